"""Reads deploy/k8s as kubectl would, checks that its parts fit together, and writes what each pod would get.

Usage: k8s.py FOLDER OUT. For each index it writes OUT/INDEX.env (NAME=value lines, as the kubelet sets them) and
OUT/INDEX.words (the command's words, one per line). Called by test_k8s.sh.
"""
import os
import sys

import yaml


def check(condition, sentence):
    if not condition:
        sys.exit("deploy/k8s: " + sentence)


def load(folder):
    with open(os.path.join(folder, "kustomization.yaml")) as file:
        root = yaml.safe_load(file)
    things = {}
    for name in root["resources"]:
        with open(os.path.join(folder, name)) as file:
            for thing in yaml.safe_load_all(file):
                things[thing["kind"]] = thing
    check(set(things) == {"Service", "Job"}, "expected a Service and a Job")
    check(root["generatorOptions"]["disableNameSuffixHash"] is True, "the Secret's name would get a suffix")
    (secret,) = root["secretGenerator"]
    return things["Service"], things["Job"], secret


def check_parts(service, job, secret):
    name = job["metadata"]["name"]
    spec = job["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    env = {e["name"]: e["value"] for e in container["env"]}
    check(service["spec"]["clusterIP"] == "None", "the Service is not headless")
    check(service["spec"]["publishNotReadyAddresses"] is True, "the lead's name would come too late")
    check(service["spec"]["selector"] == {"job-name": name}, "the Service does not select the Job's pods")
    check(pod["subdomain"] == service["metadata"]["name"], "the pods' names are not in the Service")
    check(spec["completionMode"] == "Indexed", "the Job is not indexed")
    check(spec["completions"] == spec["parallelism"], "not all processes would run at a time")
    check(env["RUBATO_SIZE"] == str(spec["completions"]), "RUBATO_SIZE is not the number of completions")
    check(spec["backoffLimit"] == 0 and pod["restartPolicy"] == "Never", "a lost pod would come back alone")
    (port,) = service["spec"]["ports"]
    check(env["RUBATO_LEAD"] == "%s-0.%s:%d" % (name, pod["subdomain"], port["port"]), "RUBATO_LEAD is not index 0")
    check([p["containerPort"] for p in container["ports"]] == [port["port"]], "the container has another port")
    volumes = {v["name"]: v for v in pod["volumes"]}
    mounts = {m["mountPath"]: volumes[m["name"]] for m in container["volumeMounts"]}
    folder, file = os.path.split(env["RUBATO_KEY_FILE"])
    check(mounts[folder]["secret"]["secretName"] == secret["name"], "the key's folder is not the Secret")
    check(mounts[folder]["secret"]["defaultMode"] == 0o400, "others could read the key")
    check(secret["files"] == [file], "the Secret has no file of the key's name")
    check("requests" in container["resources"] and "limits" in container["resources"], "no resources are asked for")
    check(all(isinstance(word, str) for word in container["args"]), "a number among the arguments is not quoted")
    check(all(isinstance(value, str) for value in env.values()), "a number in the environment is not quoted")
    return spec["completions"], container["command"] + container["args"], env


def main():
    folder, out = sys.argv[1:]
    count, words, env = check_parts(*load(folder))
    for index in range(count):
        with open(os.path.join(out, "%d.env" % index), "w") as file:
            for name, value in dict(env, JOB_COMPLETION_INDEX=str(index)).items():
                file.write("%s=%s\n" % (name, value))
        with open(os.path.join(out, "%d.words" % index), "w") as file:
            file.writelines(word + "\n" for word in words)


main()
