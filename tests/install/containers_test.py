"""What can be said of containers/ without an engine that builds them: everything a recipe names is there, and both recipes agree.

    containers_test.py SOURCE_FOLDER
"""
import os
import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop() if len(sys.argv) > 1 else ".").resolve()
DOCKER_WORDS = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "ENTRYPOINT", "CMD"}


def docker_faults(text, source=SOURCE):
    """Why a Dockerfile cannot be built from this checkout, as far as reading it tells."""
    lines = [line for line in re.sub(r"\\\n", " ", text).split("\n") if line.strip() and not line.startswith("#")]
    arguments, stages, copied = {}, set(), set()
    for line in lines:
        word, _, rest = line.partition(" ")
        words = re.sub(r"\$\{(\w+)\}", lambda match: arguments.get(match.group(1), match.group(0)), rest).split()
        if word not in DOCKER_WORDS:
            yield f"no instruction: {line}"
        elif word == "ARG" and "=" in rest:
            arguments.__setitem__(*rest.split("=", 1))
        elif word == "FROM":
            image = words[0]
            if "$" in image or ":" not in image and image not in stages:
                yield f"neither a stage nor an image with a version: {line}"
            if len(words) == 3:
                stages.add(words[2])
        elif word == "COPY":
            flags = [one for one in words if one.startswith("--")]
            names = [one for one in words if not one.startswith("--")]
            for flag in flags:
                if flag.split("=")[1] not in stages:
                    yield f"no stage: {line}"
            if not flags:
                for name in names[:-1]:
                    if not (source / name).exists():
                        yield f"not in the checkout: {line}"
                copied.add(names[-1])
        elif word == "RUN":
            program = words[0]
            if program in copied:  # COPY containers/run_stage /tmp/run_stage
                program = f"containers/{Path(program).name}"
            if not os.access(source / program, os.X_OK):
                yield f"no program: {line}"
    if [line.split()[0] for line in lines].count("USER") != 1:
        yield "whoever runs the container should not be root"


class Containers(unittest.TestCase):
    docker = (SOURCE / "containers/Dockerfile").read_text()
    apptainer = (SOURCE / "containers/kedge.def").read_text()

    def test_everything_that_the_dockerfile_names_is_there(self):
        for device in ("cpu", "cuda"):
            self.assertEqual([], list(docker_faults(self.docker.replace("ARG DEVICE=cpu", f"ARG DEVICE={device}"))))

    def test_a_dockerfile_with_a_fault_is_found_out(self):
        for good, bad, why in [
            ("RUN containers/build_stage", "RUN containers/bild_stage", "no program"),
            ("COPY containers/run_stage", "COPY containers/walk_stage", "not in the checkout"),
            ("--from=build ", "--from=biuld ", "no stage"),
            ("ARG DEVICE=cpu", "ARG DEVICE=tpu", "neither a stage nor an image"),
            ("FROM debian:12-slim AS run-cpu", "FROM debian AS run-cpu", "neither a stage nor an image"),
            ("USER kedge\n", "", "should not be root"),
            ("WORKDIR", "WORKDIRECTORY", "no instruction"),
        ]:
            self.assertIn(good, self.docker)
            found = list(docker_faults(self.docker.replace(good, bad)))
            self.assertTrue(any(why in fault for fault in found), (bad, found))

    def test_apptainer_takes_the_same_images_and_the_same_steps(self):
        images = set(re.findall(r"^FROM (\S+:\S+)", self.docker, re.M))
        self.assertEqual(images, set(re.findall(r"image=(\S+)", self.apptainer)))
        for step in ("containers/build_stage", "containers/run_stage"):
            self.assertIn(step, self.apptainer)
        for section in re.findall(r"^%files\n((?: .*\n)+)", self.apptainer, re.M):
            for line in section.strip().split("\n"):
                self.assertTrue((SOURCE / line.split()[0]).exists(), line)
        given = set(re.findall(r"\{\{ (\w+) \}\}", self.apptainer))
        self.assertEqual(given, set(re.findall(r"^    (\w+)=", self.apptainer, re.M)))

    def test_the_stages_read_what_the_scripts_say(self):
        build = (SOURCE / "containers/build_stage").read_text()
        pattern = re.search(r"sed -n 's/(\^\w+=)//p' scripts/setup", build).group(1)
        self.assertRegex((SOURCE / "scripts/setup").read_text(), re.compile(pattern + r"\d+\.\d+\.\d+$", re.M))
        self.assertIn("scripts/install /opt/kedge", build)
        self.assertIn("share/kedge/packages.txt", (SOURCE / "scripts/install").read_text())
        self.assertIn("/opt/kedge/share/kedge/packages.txt", (SOURCE / "containers/run_stage").read_text())


if __name__ == "__main__":
    unittest.main()
