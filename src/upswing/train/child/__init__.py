"""The training child: `python -m upswing.train.child JOB_FOLDER`.

It reads `job.json` and `samples.jsonl` in its folder, goes on from the newest checkpoint there, and
tells its parent on standard output how it goes (`train.core.report`). It touches nothing outside its
folder but the cache of bases, and speaks to nobody.
"""
