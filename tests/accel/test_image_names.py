"""Names of images, by the cases of the library that Docker and containerd parse them with: reference_test.go and
normalize_test.go of https://github.com/distribution/reference. All but Docker/docker, which is no registry here."""

import pytest

from accel.rules import image_names
from accel.rules.image_names import parse
from accel.rules.jobs import containers

F64 = "f" * 64
SONG = "thisisthesongthatneverendsitgoesonandonandonthisisthesongthatnev"
IDENTIFIER = "1a3f5e7d9c1b3a5f7e9d1c3b5a7f9e1d3c5b7a9f1e3d5d7c9b1a3f5e7d9c1b3a"
NAMES = {
    # name: host, repository, tag, digest
    "docker/docker": ("docker.io", "docker/docker", "", ""),
    "library/debian": ("docker.io", "library/debian", "", ""),
    "debian": ("docker.io", "library/debian", "", ""),
    "docker.io/docker/docker": ("docker.io", "docker/docker", "", ""),
    "docker.io/debian": ("docker.io", "library/debian", "", ""),
    "index.docker.io/docker/docker": ("docker.io", "docker/docker", "", ""),
    "index.docker.io/debian": ("docker.io", "library/debian", "", ""),
    "127.0.0.1:5000/docker/docker": ("127.0.0.1:5000", "docker/docker", "", ""),
    "127.0.0.1:5000/debian": ("127.0.0.1:5000", "debian", "", ""),
    "192.168.0.1": ("docker.io", "library/192.168.0.1", "", ""),
    "192.168.0.1:80": ("docker.io", "library/192.168.0.1", "80", ""),
    "192.168.0.1:8/debian": ("192.168.0.1:8", "debian", "", ""),
    SONG: ("docker.io", f"library/{SONG}", "", ""),
    "[fc00::1]:5000/docker": ("[fc00::1]:5000", "docker", "", ""),
    "[fc00:1:2:3:4:5:6:7]:5000/library/debian": ("[fc00:1:2:3:4:5:6:7]:5000", "library/debian", "", ""),
    f"docker.io/{IDENTIFIER}": ("docker.io", f"library/{IDENTIFIER}", "", ""),
    "docker-rules/docker": ("docker.io", "docker-rules/docker", "", ""),
    "docker---rules/docker": ("docker.io", "docker---rules/docker", "", ""),
    "d/docker": ("docker.io", "d/docker", "", ""),
    "dock__er/docker": ("docker.io", "dock__er/docker", "", ""),
    "library/foo/bar": ("docker.io", "library/foo/bar", "", ""),
    "ubuntu-12.04-base": ("docker.io", "library/ubuntu-12.04-base", "", ""),
    "test_com/foo": ("docker.io", "test_com/foo", "", ""),
    "test-com:8080/foo": ("test-com:8080", "foo", "", ""),
    "xn--n3h.com/myimage:xn--n3h.com": ("xn--n3h.com", "myimage", "xn--n3h.com", ""),
    f"xn--7o8h.com/myimage:xn--7o8h.com@sha512:{F64}{F64}": (
        "xn--7o8h.com", "myimage", "xn--7o8h.com", f"sha512:{F64}{F64}",
    ),
    "test.com:5000": ("docker.io", "library/test.com", "5000", ""),
    "test:5000/repo:tag": ("test:5000", "repo", "tag", ""),
    f"test:5000/repo:tag@sha256:{F64}": ("test:5000", "repo", "tag", f"sha256:{F64}"),
    f"test:5000/repo@sha256:{F64}": ("test:5000", "repo", "", f"sha256:{F64}"),
    "lowercase:Uppercase": ("docker.io", "library/lowercase", "Uppercase", ""),
    "sub-dom1.foo.com/bar/baz/quux:some-long-tag": ("sub-dom1.foo.com", "bar/baz/quux", "some-long-tag", ""),
    "b.gcr.io/test.example.com/my-app:test.example.com": (
        "b.gcr.io", "test.example.com/my-app", "test.example.com", "",
    ),
    "foo_bar.com:8080": ("docker.io", "library/foo_bar.com", "8080", ""),
    "[2001:db8::1]/repo": ("[2001:db8::1]", "repo", "", ""),
    f"[2001:db8::1]:5000/repo:tag@sha256:{F64}": ("[2001:db8::1]:5000", "repo", "tag", f"sha256:{F64}"),
    "[::1]:5000/repo": ("[::1]:5000", "repo", "", ""),
}  # fmt: skip
NO_NAMES = [
    "https://github.com/docker/docker", "docker/Docker", "-docker", "-docker/docker", "-docker.io/docker/docker",
    "docker///docker", "docker.io/docker/Docker", "docker.io/docker///docker", "[fc00::1]", "[fc00::1]:5000",
    "fc00::1:5000/debian", "[fe80::1%eth0]:5000/debian", "[2001:db8:3:4::192.0.2.33]:5000/debian", IDENTIFIER,
    "docker-/docker",
    "-docker-/docker", "____/____", "_docker/_docker", "dock..er/docker", "dock_.er/docker",
    "dock-.er/docker", "docker/", "this_is_not_a_valid_namespace_since_its_length_is_over_255_" * 5 + "/docker",
    "", ":justtag", f"@sha256:{F64}", f"repo@sha256:{'f' * 34}", f"validname@invaliddigest:{F64}{F64}", "Uppercase:tag",
    "test:5000/Uppercase/lowercase:tag", "a/" * 128 + "a:tag", "aa/asdf$$^/aa", "[2001:db8::1]:tag",
    "[fe80::1%@invalidzone]:5000/repo", "busybox:-foo", "busybox@foo",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_what_docker_takes(name: str) -> None:
    found = parse(name)
    assert (found.host, found.repository, found.tag, found.digest) == NAMES[name]
    assert name == found.bare + (f":{found.tag}" if found.tag else "") + (f"@{found.digest}" if found.digest else "")
    assert containers.IMAGE.id not in [each.rule for each in containers.image(name)]


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_docker_does_not_take(name: str) -> None:
    with pytest.raises(ValueError):
        parse(name)
    (finding,) = containers.image(name)
    assert finding.rule == containers.IMAGE.id and "which is no image name: " in finding.message


@pytest.mark.parametrize(
    "name, why",
    [
        ("ghcr.io/Acme/Train:1", "the repository is not in lower case"),
        ("Acme/train:1", "the repository is not in lower case"),
        ("https://ghcr.io/acme/train:1", "it is a URL"),
        ("acme/train:1:2", "it is not registry/repository:tag"),
        ("acme/train@sha256:12", "the digest is not sha256: and 64 digits"),
        ("acme/train:" + "a" * 129, "the tag is not 1 to 128"),
        ("acme/train:", "the tag is not 1 to 128"),
        ("acme/train 1", "it is not registry/repository:tag"),
        ("acme/" + "a" * image_names.NAME_MAX, "more than 255 characters"),
    ],
)
def test_what_is_wrong_is_said(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(name)
