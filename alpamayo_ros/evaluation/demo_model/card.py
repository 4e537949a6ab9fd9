"""Writes the small model's card: what it is, and how it does on drives it never saw.

    python -m alpamayo_ros.evaluation.demo_model.card [MODEL]

plans some hundred times on held-out drives, which takes minutes, and writes MODEL/README.md.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from alpamayo_ros.devices.device import prepare_environment

prepare_environment()  # before torch is imported

from tqdm import tqdm  # noqa: E402

from alpamayo_ros.demo.causes import TEMPLATES  # noqa: E402
from alpamayo_ros.demo.drive import HELD_OUT_SEEDS, MAX_DURATION_S  # noqa: E402
from alpamayo_ros.demo.report import page_template  # noqa: E402
from alpamayo_ros.demo.small_model import FOLDER as SMALL  # noqa: E402
from alpamayo_ros.demo.training.examples import single_threaded  # noqa: E402
from alpamayo_ros.demo.training.train import PLAN_NAME, Numbers  # noqa: E402
from alpamayo_ros.evaluation.demo_model.figures import figures  # noqa: E402
from alpamayo_ros.evaluation.demo_model.score import SCORED_SEEDS, TURN_SEEDS, Scorer, Scores  # noqa: E402
from alpamayo_ros.evaluation.statistics import Estimate  # noqa: E402
from alpamayo_ros.model import AlpamayoR1  # noqa: E402

WORST = 10


def score(folder: Path, greedy: bool, workers: int) -> Scores:
    """The scores of all held-out drives, with progress."""
    scores = Scores()
    with ProcessPoolExecutor(workers, get_context("spawn"), _prepare, (folder, greedy)) as pool:
        jobs = [pool.submit(_score_drive, seed) for seed in (*SCORED_SEEDS, *TURN_SEEDS)]
        for job in tqdm(jobs, desc="held-out drives", unit="drive"):
            scores.add(job.result())
    return scores


def card(folder: Path, scores: Scores, greedy: bool) -> str:
    """The card of a model folder, Markdown."""
    model = AlpamayoR1.from_pretrained(folder)
    template = page_template("alpamayo_ros.evaluation", "model_card.md", {"percent": _percent})
    page = template.render(
        parameters=sum(p.numel() for p in model.network.parameters()),
        megabytes=sum(path.stat().st_size for path in folder.glob("**/*")) / 1e6,
        drive_s=round(MAX_DURATION_S),
        sentences=len(TEMPLATES),
        held_out=HELD_OUT_SEEDS.stop,
        first_seed=SCORED_SEEDS[0],
        last_seed=SCORED_SEEDS[-1],
        turn_seeds=TURN_SEEDS,
        plan=Numbers(**json.loads((folder / PLAN_NAME).read_text())),
        count=len(scores.seeing),
        sampling="most probable words" if greedy else "words sampled at temperature 0.6",
        seed=0,
        figures=figures(scores),
        worst=sorted(scores.seeing, key=lambda scored: -scored.ade_m[0])[:WORST],
        zip=zip,
    )
    return page + "\n"


def _percent(part: Estimate) -> str:
    if part.mean is None or part.low is None or part.high is None:
        return "not known"
    return f"{100 * part.mean:.1f} % ({100 * part.low:.1f} to {100 * part.high:.1f})"


def _prepare(folder: Path, greedy: bool) -> None:
    global _scorer
    single_threaded()
    _scorer = Scorer(AlpamayoR1.from_pretrained(folder), greedy)


def _score_drive(seed: int) -> Scores:
    return _scorer.drive(seed)


_scorer: Scorer


def main() -> None:
    """Score and write the card."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", type=Path, default=SMALL, help="folder of the model")
    parser.add_argument("--greedy", action="store_true", help="take the most probable words")
    parser.add_argument("--workers", type=int, default=2, help="default %(default)s")
    chosen = parser.parse_args()
    if chosen.workers < 1:
        parser.error(f"--workers {chosen.workers}: allowed are whole numbers from 1 on")
    if not (chosen.model / PLAN_NAME).is_file():
        parser.error(f"{chosen.model} has no {PLAN_NAME}: name a folder that the training wrote")
    scores = score(chosen.model, chosen.greedy, chosen.workers)
    page = card(chosen.model, scores, chosen.greedy)
    (chosen.model / "README.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
