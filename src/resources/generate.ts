/** The committed files generated from the schemas: path from the repository's root, and content. */
import { crdPlural, crdYaml } from "./crd.ts";
import { KINDS } from "./kinds.ts";
import { referencePage } from "./reference.ts";

export function generatedFiles(): ReadonlyMap<string, string> {
  const crds = Object.values(KINDS).flatMap((kind): [string, string][] =>
    kind.crd === undefined
      ? []
      : [[`crds/${crdPlural(kind.names)}.yaml`, crdYaml(kind, kind.crd.columns)]],
  );
  return new Map([
    ...crds.toSorted(([a], [b]) => (a < b ? -1 : 1)),
    ["docs/resources.md", referencePage()],
  ]);
}
