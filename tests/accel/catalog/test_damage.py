"""A damaged data file is one error that names the file and the line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from accel.catalog import DamagedData, accelerator, interruption, machine, price, regions, tables
from accel.catalog.network_prices import part_price
from tests.support.catalog import Damage, forget, line_of, replaced

A2 = "gcp,us-central1,,a2-highgpu-1g,"


@pytest.mark.parametrize(
    "file, start, old, new, call, why",
    [
        ("prices.csv", A2, "3.673385", "3;67", lambda: price("gcp", "us-central1", "a2-highgpu-1g"),
         "on_demand_usd_hour: not a number: 3;67"),
        ("prices.csv", A2, "3.673385", "nan", lambda: price("gcp", "us-central1", "a2-highgpu-1g"),
         "on_demand_usd_hour: not a number: nan"),
        ("prices.csv", A2, "3.673385", "0", lambda: price("gcp", "us-central1", "a2-highgpu-1g"),
         "on_demand_usd_hour: not above zero: 0"),
        ("prices.csv", A2, ",high,", ",sure,", lambda: price("gcp", "us-central1", "a2-highgpu-1g"),
         "confidence: not one of high, medium, low: sure"),
        ("prices.csv", A2, ",machine,", ",gpu-only,", lambda: price("gcp", "us-central1", "a2-highgpu-1g"),
         "price_scope: must be machine: gpu-only"),
        ("prices.csv", A2, "a2-highgpu-1g", "a2-hugegpu-1g", lambda: price("aws", "us-east-1", "g5.xlarge"),
         "machine: unknown machine: a2-hugegpu-1g"),
        ("prices.csv", A2, "gcp", "azure", lambda: price("aws", "us-east-1", "g5.xlarge"),
         "cloud: unknown cloud: azure"),
        ("prices.csv", A2, ",machine,", ",", lambda: price("aws", "us-east-1", "g5.xlarge"),
         "has 17 cells, the header 18"),
        ("regions.csv", "gcp,us-central1,us-central1-a,a2-highgpu-1g", "a2-highgpu-1g", "a2-hugegpu-1g",
         lambda: regions("aws"), "machine: unknown machine: a2-hugegpu-1g"),
        ("aws_spot_advisor.csv", "aws,af-south-1,g4dn.12xlarge", "<5%", "5%",
         lambda: interruption("af-south-1", "g4dn.12xlarge"),
         "interruption_band: not one of <5%, 5-10%, 10-15%, 15-20%, >20%: 5%"),
        ("aws_spot_advisor.csv", "aws,af-south-1,g4dn.12xlarge", "87", "8.7",
         lambda: interruption("af-south-1", "g4dn.12xlarge"), "savings_over_on_demand_pct: not a whole number: 8.7"),
        ("machines.csv", "gcp,a2-highgpu-1g,", ",12,", ",,", lambda: machine("gcp", "a2-highgpu-1g"),
         "vcpus: is empty"),
        ("machines.csv", "gcp,a2-highgpu-1g,", "accelerator,", "gpu-box,",
         lambda: machine("gcp", "a2-highgpu-2g"), "kind: unknown kind of machine: gpu-box"),
        ("machines.csv", "gcp,a2-highgpu-1g,", "nvidia-tesla-a100", "nvidia-a1000",
         lambda: machine("gcp", "a2-highgpu-2g"), "accelerator: unknown accelerator: nvidia-a1000"),
        ("machines.csv", "gcp,a2-highgpu-1g,", "x86_64", "x87", lambda: machine("gcp", "a2-highgpu-2g"),
         "cpu_arch: unknown CPU architecture: x87"),
        ("accelerators.csv", "nvidia-l4,", ",24,", ",24GB,", lambda: accelerator("h100"),
         "nominal_memory_gb: not a number: 24GB"),
        ("aws_network_prices.csv", "us-east-1,gp3-gib,", ",0.08,", ",8 cents,",
         lambda: part_price("us-east-1", "gp3-gib"), "usd: not a number: 8 cents"),
        ("accelerator_aliases.csv", "a100-80,", "nvidia-a100-80gb", "nvidia-a1000", lambda: accelerator("h100"),
         "accelerator: unknown accelerator: nvidia-a1000"),
    ],
)  # fmt: skip
def test_the_file_and_the_line_are_named(
    damage: Damage, file: str, start: str, old: str, new: str, call: Callable[[], object], why: str
) -> None:
    number = line_of(file, start)
    damage(file, replaced(start, old, new))
    with pytest.raises(DamagedData) as error:
        call()
    assert str(error.value) == f"{file}:{number}: {why}"


def test_a_comma_in_a_number_is_a_cell_too_many(damage: Damage) -> None:
    number = line_of("prices.csv", A2)
    damage("prices.csv", replaced(A2, "3.673385", "3,67"))
    with pytest.raises(DamagedData, match=rf"prices\.csv:{number}: has 19 cells, the header 18"):
        price("gcp", "us-central1", "a2-highgpu-1g")


def test_a_quoted_number_with_a_comma_is_no_number(damage: Damage) -> None:
    number = line_of("prices.csv", A2)
    damage("prices.csv", replaced(A2, "3.673385", '"1,5"'))
    with pytest.raises(DamagedData) as error:
        price("gcp", "us-central1", "a2-highgpu-1g")
    assert str(error.value) == f"prices.csv:{number}: on_demand_usd_hour: not a number: 1,5"
    assert (error.value.file, error.value.line, error.value.column) == ("prices.csv", number, "on_demand_usd_hour")


@pytest.mark.parametrize("column", ["machine", "on_demand_usd_hour", "confidence"])
def test_a_missing_column_is_named(damage: Damage, column: str) -> None:
    damage("prices.csv", replaced("cloud,", f",{column},", f",{column}s,"))
    with pytest.raises(DamagedData) as error:
        price("gcp", "us-central1", "a2-highgpu-1g")
    assert str(error.value) == f"prices.csv:1: {column}: the column is missing"


def test_an_open_quote_and_an_empty_file_and_bytes_that_are_no_text(damage: Damage) -> None:
    number = line_of("machines.csv", "gcp,a2-highgpu-1g,")
    damage("machines.csv", replaced("gcp,a2-highgpu-1g,", "x86_64", '"x86_64'))
    with pytest.raises(DamagedData, match=rf"machines\.csv:{number}: unexpected end of data"):
        machine("gcp", "a2-highgpu-1g")
    forget()
    (Path(tables.DATA) / "machines.csv").write_text("")
    with pytest.raises(DamagedData, match=r"machines\.csv:1: cloud: the column is missing"):
        machine("gcp", "a2-highgpu-1g")
    forget()
    (Path(tables.DATA) / "machines.csv").write_bytes(b"cloud\ngcp\n\xff\n")
    with pytest.raises(DamagedData, match=r"machines\.csv:3: not UTF-8"):
        machine("gcp", "a2-highgpu-1g")
