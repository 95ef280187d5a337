/** The committed files generated from the schemas: path from the repository's root, and content. */
import { CRD_KINDS, crdYaml } from "./crd.ts";
import { referencePage } from "./reference.ts";

export function generatedFiles(): ReadonlyMap<string, string> {
  return new Map([
    ...CRD_KINDS.map((kind): [string, string] => [`crds/${kind.plural}.yaml`, crdYaml(kind)]),
    ["docs/resources.md", referencePage()],
  ]);
}
