"""Modules that declare jobs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from perdure.errors import SettingsError
from perdure.kinds.including import checked_modules, import_modules


@pytest.mark.parametrize("name", ["shop", "shop.jobs", "shop.jobs.*"])
def test_a_name_of_a_module_may_be_given_alone(name: str) -> None:
    assert checked_modules("include", name) == checked_modules("include", [name]) == (name,)


@pytest.mark.parametrize("name", ["", "shop/jobs", "shop.", ".*", "shop.*.jobs", "shop jobs", "shop.jobs.py*"])
def test_what_is_no_name_of_a_module_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(SettingsError, match=r"include must be names of modules such as shop\.jobs, .*got "):
        checked_modules("include", [name])


def test_a_star_imports_every_module_at_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "starred_shop" / "mail"
    deep.mkdir(parents=True)
    for file in (deep.parent / "__init__.py", deep / "__init__.py", deep / "late.py", deep.parent / "pay.py"):
        file.touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    import_modules(["starred_shop"])
    assert "starred_shop.pay" not in sys.modules
    import_modules(["starred_shop.*"])
    found = {name for name in sys.modules if name.startswith("starred_shop")}
    assert found == {"starred_shop", "starred_shop.mail", "starred_shop.mail.late", "starred_shop.pay"}
    with pytest.raises(SettingsError, match=r"starred_shop\.pay is a module, not a package: drop the \.\*"):
        import_modules(["starred_shop.pay.*"])
    for name in found:
        monkeypatch.delitem(sys.modules, name)
