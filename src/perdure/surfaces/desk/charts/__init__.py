"""Charts: SVG drawn here, coloured by classes of the style sheet, with a label for screen readers and tooltips.

A chart is a function that takes values and returns markup. The markup has no colours, inline styles or scripts, so it
follows the theme and passes a strict content security policy. Colours are given as names of state colours: `ready`,
`running`, `retrying`, `waiting`, `ok`, `dead`, and `none`.
"""

from perdure.surfaces.desk.charts.bars import bars as bars
from perdure.surfaces.desk.charts.bars import meter as meter
from perdure.surfaces.desk.charts.cells import Cell as Cell
from perdure.surfaces.desk.charts.cells import cells as cells
from perdure.surfaces.desk.charts.series import Line as Line
from perdure.surfaces.desk.charts.series import series as series
from perdure.surfaces.desk.charts.sparkline import sparkline as sparkline
from perdure.surfaces.desk.charts.timeline import Bar as Bar
from perdure.surfaces.desk.charts.timeline import Mark as Mark
from perdure.surfaces.desk.charts.timeline import Timeline as Timeline
from perdure.surfaces.desk.charts.timeline import timeline as timeline
from perdure.surfaces.desk.charts.tree import Node as Node
from perdure.surfaces.desk.charts.tree import tree as tree
