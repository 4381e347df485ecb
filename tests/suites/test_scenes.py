"""Generated scenes: what is in them, and that the seed alone decides."""

from __future__ import annotations

import torch

from suites.data.images.scenes import OBJECTS, SHAPES, Scenes


def test_the_seed_decides() -> None:
    one, same = Scenes("validation", 20, 48, 0), Scenes("validation", 20, 48, 0)
    (images,), objects = one.batch(list(range(20)))
    (again,), objects_again = same.batch(list(reversed(range(20))))
    assert torch.equal(images, again.flip(0)) and torch.equal(objects, objects_again.flip(0))
    others = [Scenes("validation", 20, 48, 1), Scenes("train", 20, 48, 0), Scenes("validation", 21, 48, 0)]
    assert len({each.identity.sha256 for each in [one, same, *others]}) == 4
    assert not any(torch.equal(other.batch([0])[0][0], images[:1]) for other in others[:2])
    assert one.kept().identity == same.kept().identity
    assert torch.equal(one.kept().batch([3])[1], objects[3:4])


def test_making_them_leaves_the_global_random_numbers_alone() -> None:
    before = torch.get_rng_state()
    Scenes("train", 2, 48, 0).batch([0, 1])
    assert torch.equal(before, torch.get_rng_state())


def test_boxes_lie_around_the_shapes() -> None:
    (images,), objects = Scenes("train", 60, 48, 0).batch(list(range(60)))
    assert images.shape == (60, 3, 48, 48) and objects.shape == (60, OBJECTS, 6)
    assert images.min() >= -1 and images.max() <= 1
    counts, kinds = set(), set()
    for image, rows in zip(images, objects, strict=True):
        present = rows[rows[:, 0] >= 0]
        counts.add(len(present))
        assert not rows[rows[:, 0] < 0, 1:].any() and not rows[:, 5].any()
        bright = image.mean(0) > -0.4
        for kind, x, y, width, height, _ in (present * torch.tensor([1, 48, 48, 48, 48, 1])).tolist():
            kinds.add(kind)
            left, upper = round(x - width / 2), round(y - height / 2)
            right, lower = round(x + width / 2), round(y + height / 2)
            assert min(left, upper) >= 0 and max(right, lower) <= 48
            shape = bright[upper:lower, left:right]
            covered = {edge.any().item() for edge in (shape[-1], shape[:, 0], shape[:, -1], shape[: int(height // 4)])}
            assert covered == {True}
            shape.fill_(False)
        assert not bright.any()
    assert (counts, kinds) == ({1, 2}, set(map(float, range(len(SHAPES)))))
