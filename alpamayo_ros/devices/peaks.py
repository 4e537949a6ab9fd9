"""Public peak figures of devices: no measurement on one of them can be above.

bfloat16 dense, without sparsity. A measured rate (floor.py) is the nearer bound; these catch a
clock that was stopped too early, and give a floor where nothing was measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from alpamayo_ros.devices.floor import Rates

TERA = 1e12
UNVERIFIED = "unverified"  # widely repeated; no source of the maker was found


@dataclass(frozen=True)
class Peak:
    """What a device can do at best, and who says so."""

    name: str
    rates: Rates
    flop_source: str
    bytes_source: str

    def __str__(self) -> str:
        """One line, with the sources."""
        flop, read = self.rates.flop_per_s / TERA, self.rates.bytes_per_s / 1e9
        return (
            f"{self.name}: {flop:.1f} TFLOP/s ({self.flop_source}), "
            f"{read:.0f} GB/s ({self.bytes_source})"
        )

    @property
    def unverified(self) -> bool:
        """Whether neither figure has a source."""
        return self.flop_source == self.bytes_source == UNVERIFIED

    def is_below(self, rates: Rates) -> bool:
        """Whether rates are above what is possible; an unverified figure proves nothing."""
        return (self.flop_source != UNVERIFIED and rates.flop_per_s > self.rates.flop_per_s) or (
            self.bytes_source != UNVERIFIED and rates.bytes_per_s > self.rates.bytes_per_s
        )


def _ascend(name: str, cores: int, cube_mhz: int, bytes_per_s: float) -> Peak:
    """A die from cube_core_cnt and cube_freq in its file of the CANN runtime's platform table.

    A cube core multiplies 16 x 16 by 16 x 16 numbers a cycle (cube_m_size, _k_size, _n_size).
    """
    flop_per_s = cores * cube_mhz * 1e6 * 2 * 16**3
    source = f"CANN runtime, platform_config/{name}.ini: {cores} cube cores at {cube_mhz} MHz"
    return Peak(name, Rates(flop_per_s, bytes_per_s), source, UNVERIFIED)


# A second source of the dense rate: 910B3 294.91, 910B2 353.89 TFLOPS in op-mfu-calculator
# (ascend-ai-coding/awesome-ascend-skills). NVIDIA's own data sheets were not read for this.
SXM5 = "glennklockwood.com/garden/processors/h100"
PEAKS = (
    _ascend("Ascend910B2", 24, 1800, 1.6 * TERA),
    _ascend("Ascend910B3", 20, 1800, 1.6 * TERA),
    _ascend("Ascend910B4", 20, 1500, 0.8 * TERA),
    # Dies of Atlas A3; for a 910_9362 246 TFLOPS and 1.25 TB/s are reported as attained.
    _ascend("Ascend910_9362", 20, 1500, 1.6 * TERA),
    _ascend("Ascend910_9391", 24, 1850, 1.6 * TERA),
    Peak("NVIDIA H100 80GB HBM3", Rates(989.4 * TERA, 3.35 * TERA), SXM5, SXM5),  # SXM
    # 114 of the SXM's 132 processors, and HBM2e. NVIDIA's product brief (PB-11133) says "greater
    # than 2,000" GB/s: what bus and clock come to is the bound.
    Peak(
        "NVIDIA H100 PCIe",
        Rates(756.5 * TERA, 5120 / 8 * 2 * 1593e6),
        "archive-lib.hpctech.co.jp/gpuproduct/nvidia-h100.html: 1,513 with sparsity, halved",
        "cputronic.com/de/gpu/nvidia-h100-pcie: 5120 bit twice a cycle at 1593 MHz",
    ),
    Peak("NVIDIA H100 NVL", Rates(835.5 * TERA, 3.9 * TERA), UNVERIFIED, UNVERIFIED),
    Peak(
        "NVIDIA H200",  # SXM; the NVL card says so in its name
        Rates(989.4 * TERA, 4.8 * TERA),
        f"{SXM5}, the same chip",
        "itkb.uw.cz/2026/06/nvidia-h200-vs-b300-precisions-cores.html",
    ),
)


def peak_of(name: str) -> Peak | None:
    """The figures for a device that calls itself exactly so, such as "NVIDIA H200".

    Another form of the same chip ("NVIDIA H100 PCIe", "... MIG 1g.10gb") has another name and
    other figures, or none.
    """
    return next((peak for peak in PEAKS if peak.name == name), None)
