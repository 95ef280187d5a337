/**
 * Makes src/gen/github-routes.json and src/gen/github-graphql.json: what the GitHub plugin needs of
 * GitHub's own descriptions, and no more. The REST routes come from the OpenAPI description (npm
 * @octokit/openapi), the GraphQL types from the public schema (npm @octokit/graphql-schema).
 * Offline. Which action a route or a type stands for is decided in src/providers/github, by tables
 * that people read.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import {
  buildSchema,
  getNamedType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  isUnionType,
} from "graphql";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const METHODS = new Set(["get", "put", "post", "patch", "delete", "head"]);

/** A data file of a package, which its `exports` need not name. */
function readPackageFile(name, file) {
  return readFileSync(path.join(root, "node_modules", name, file), "utf8");
}

function write(name, value, note) {
  mkdirSync(path.join(root, "src/gen"), { recursive: true });
  writeFileSync(path.join(root, "src/gen", name), `${JSON.stringify(value, null, 1)}\n`);
  console.log(`src/gen/${name}: ${note}`);
}

/**
 * `METHOD path category subcategory operation`; a parameter is `{name}`, `{name:int}`, `{name:a|b}`
 * or `{name:multi}`.
 */
function routes() {
  const openapi = JSON.parse(readPackageFile("@octokit/openapi", "generated/api.github.com.json"));
  const resolved = (value) =>
    value.$ref === undefined
      ? value
      : value.$ref
          .split("/")
          .slice(1)
          .reduce((at, key) => at[key], openapi);
  const lines = [];
  for (const [template, item] of Object.entries(openapi.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      if (!METHODS.has(method)) continue;
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])]
        .map(resolved)
        .filter((each) => each.in === "path");
      const typed = template.replaceAll(/\{([^}]+)\}/g, (whole, name) => {
        const parameter = parameters.find((each) => each.name === name);
        const schema = resolved(parameter?.schema ?? {});
        if (parameter?.["x-multi-segment"] === true) return `{${name}:multi}`;
        if (schema.type === "integer") return `{${name}:int}`;
        if (Array.isArray(schema.enum) && schema.enum.every((each) => /^[\w.-]+$/.test(each)))
          return `{${name}:${schema.enum.join("|")}}`;
        return whole;
      });
      const { category, subcategory } = operation["x-github"];
      lines.push(
        [method.toUpperCase(), typed, category, subcategory || "-", operation.operationId].join(
          " ",
        ),
      );
    }
  }
  write(
    "github-routes.json",
    { source: "api.github.com", version: openapi.info.version, routes: lines },
    `${lines.length} operations`,
  );
}

/**
 * By type: its fields, space-separated; `name` of a scalar or enum, `name:Type` of anything else.
 */
function graphql() {
  // The published schema defines two fields twice, which is no matter here.
  const schema = buildSchema(readPackageFile("@octokit/graphql-schema", "schema.graphql"), {
    assumeValidSDL: true,
  });
  const types = {};
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith("__")) continue;
    if (isUnionType(type)) types[type.name] = "";
    if (!isObjectType(type) && !isInterfaceType(type)) continue;
    types[type.name] = Object.values(type.getFields())
      .map((field) => {
        const named = getNamedType(field.type);
        return isLeafType(named) ? field.name : `${field.name}:${named.name}`;
      })
      .join(" ");
  }
  write("github-graphql.json", { types }, `${Object.keys(types).length} types`);
}

routes();
graphql();
