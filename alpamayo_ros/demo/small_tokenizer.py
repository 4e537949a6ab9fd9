"""Makes the tokenizer of the small model: a byte-level BPE trained on generated driving sentences.

    python -m alpamayo_ros.demo.small_tokenizer

writes small_model/tokenizer.json again, byte for byte. Nothing but the sentences below goes in.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from alpamayo_ros.demo.causes import TEMPLATES
from alpamayo_ros.demo.navigation import PHRASES, TURNS
from alpamayo_ros.model.prompt import CAMERA_LABELS, INSTRUCTION, SYSTEM

FOLDER = Path(__file__).parent / "small_model"
TEXT_SIZE = 632
# Qwen3's chat and image tokens that the prompt needs, and two that are not special.
ADDED_TOKENS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<think>", "</think>"),
)
NOT_SPECIAL = ("<think>", "</think>")
# Words with their leading space, single digits, runs of signs, runs of white space.
PIECES = r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"

ACTIONS = (
    *("keep the lane", "keep the speed", "slow down", "accelerate", "accelerate gently"),
    *("brake", "brake gently", "brake hard", "stop", "stay stopped", "move off"),
    *("follow the curve to the left", "follow the curve to the right", "keep a safe distance"),
    *("follow the vehicle ahead", "yield", "yield to the pedestrian", "wait", "pull over"),
    *("turn left", "turn right", "go straight", "change to the left lane"),
    *("change to the right lane", "nudge to the left", "nudge to the right"),
)
CAUSES = (
    *("the road ahead is clear", "the road bends to the left", "the road bends to the right"),
    *("the curve ahead is sharp", "the road is straight", "the vehicle ahead is slower"),
    *("the lead vehicle is braking", "the lead vehicle is close", "the lead vehicle is far away"),
    *("a vehicle is stopped in the lane", "a pedestrian is crossing", "a cyclist is on the right"),
    *("the traffic light is red", "the traffic light is green", "the light turns yellow"),
    *("there is a stop sign", "the speed is below the limit", "the speed is above the limit"),
    *("the gap is large enough", "the gap is too small", "the lane is ending"),
    *("a vehicle is merging from the right", "an oncoming vehicle is near", "the view is poor"),
    *("the intersection is ahead", "the road is wet", "the vehicle is standing"),
)
PLACES = ("", " in 10 m", " in 25 m", " in 40 m", " at 5 m/s", " at 12 m/s", " at 30 km/h")
ROUTES = (
    *("Turn left", "Turn right", "Go straight", "Keep left", "Keep right", "Take the exit"),
    *("Continue", "Make a U-turn", "Enter the roundabout", "Change to the left lane"),
)
STREETS = (
    *("", " onto Main Street", " onto the highway", " at the traffic light", " at the junction"),
    *(" at the next intersection", " onto Station Road", " onto the boulevard"),
)


def driving_sentences() -> Iterator[str]:
    """What the demo's drives say, many times over, and what others might say to the model."""
    distances_m = range(5, 65, 5)
    for template, d in itertools.product(TEMPLATES.values(), distances_m):
        yield from [template.format(d=d)] * 20
    for phrase, turn, d in itertools.product(PHRASES, TURNS.values(), distances_m):
        yield from [phrase.format(Turn=turn.capitalize(), turn=turn, d=d)] * 20
    for action, cause, place in itertools.product(ACTIONS, CAUSES, PLACES):
        yield f"{action.capitalize()} because {cause}{place}."
        yield f"{cause.capitalize()}{place}, so {action}."
    for route, street, place in itertools.product(ROUTES, STREETS, PLACES):
        yield f"{route}{street}{place}"
    for text in (SYSTEM, INSTRUCTION, *CAMERA_LABELS.values()):
        yield from [f"{text}: system\nuser\nassistant\nframe "] * 100


def make_tokenizer() -> Tokenizer:
    """Train the tokenizer; the same sentences make the same one."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TEXT_SIZE,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(driving_sentences(), trainer)
    return tokenizer


def with_added_tokens(tokenizer: Tokenizer) -> str:
    """tokenizer.json with ADDED_TOKENS behind the text's ids, of which there are TEXT_SIZE."""
    values = json.loads(tokenizer.to_str())
    values["added_tokens"] = [
        {
            "id": TEXT_SIZE + index,
            "content": content,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": content not in NOT_SPECIAL,
        }
        for index, content in enumerate(ADDED_TOKENS)
    ]
    return json.dumps(values, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    (FOLDER / "tokenizer.json").write_text(with_added_tokens(make_tokenizer()), encoding="utf-8")
