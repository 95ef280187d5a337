/** A real Redis in a container, by testcontainers, with what tests use of `../redis.ts`. */
import { createRequire } from "node:module";
import path from "node:path";
import { Redis } from "ioredis";
import { IMAGES, type Lab } from "./lab.ts";
import { run } from "./run.ts";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const PORT = 6379;

/** What is used of testcontainers, which is not among the project's own packages. */
interface Testcontainers {
  readonly GenericContainer: new (image: string) => GenericContainer;
}
interface GenericContainer {
  withExposedPorts(port: number): GenericContainer;
  start(): Promise<StartedContainer>;
}
interface StartedContainer {
  getHost(): string;
  getMappedPort(port: number): number;
  restart(): Promise<void>;
  stop(): Promise<unknown>;
}

export class RedisContainer {
  readonly #container: StartedContainer;

  private constructor(container: StartedContainer) {
    this.#container = container;
  }

  /** Starts the image that `images/build.sh redis` has built, in the laboratory's engine. */
  static async start({ engineSocket, nodeAddress }: Lab): Promise<RedisContainer> {
    process.env["DOCKER_HOST"] = `unix://${engineSocket}`;
    process.env["TESTCONTAINERS_HOST_OVERRIDE"] = nodeAddress;
    // The container that removes others is in a registry. These end with the laboratory.
    process.env["TESTCONTAINERS_RYUK_DISABLED"] = "true";
    const archive = path.join(IMAGES, "redis.tar");
    await run(["podman", "--url", `unix://${engineSocket}`, "load", "--quiet", "--input", archive]);
    const load = createRequire(path.join(ROOT, ".venv/containers/package.json"));
    const { GenericContainer } = load("testcontainers") as Testcontainers;
    const image = new GenericContainer("localhost/redis:dev").withExposedPorts(PORT);
    return new RedisContainer(await image.start());
  }

  get url(): string {
    return `redis://${this.#container.getHost()}:${this.#container.getMappedPort(PORT)}`;
  }

  /** Over a connection of its own. */
  async command(name: string, ...args: readonly string[]): Promise<unknown> {
    const client = new Redis(this.url, { lazyConnect: true, maxRetriesPerRequest: 3 });
    try {
      return await client.call(name, ...args);
    } finally {
      client.disconnect();
    }
  }

  /** Starts it again, empty: it keeps nothing on disk. */
  async restart(): Promise<void> {
    await this.#container.restart();
  }

  async stop(): Promise<void> {
    await this.#container.stop();
  }
}
