-- name: write
INSERT INTO {audit} (at, actor, action, job_id, details)
SELECT :now, :actor, :action, row.value, :details FROM json_each(:ids) AS row;
