/**
 * Pipeline is a list of stages that process a request in order. Each stage adds its results to the
 * state for the next ones, or refuses the request. A stage may be asynchronous; if none is, the
 * whole list runs synchronously.
 */
import { BadRequestError } from "../dialects/dialect.ts";
import { publicError } from "../../access/errors.ts";
import { Refusal } from "../../access/refusal.ts";

/** Result of a stage: its additions to the state, or a refusal. */
export type Outcome<Added> = Added | Refusal | Promise<Added | Refusal>;

export interface Driver<In, Out> {
  /** Calls back with a stage's promise; the driver handles errors. */
  when<T>(promise: Promise<T>, callback: (value: T) => void): void;
  done(state: Out): void;
  /** @param state the results of the stages before the refusal */
  refused(refusal: Refusal, state: In & Partial<Out>): void;
}

interface Stage<Context> {
  readonly name: string;
  readonly run: (state: never, context: Context) => Outcome<object>;
}

export class Pipeline<Context, In extends object, Out extends In = In> {
  readonly #stages: readonly Stage<Context>[];

  private constructor(stages: readonly Stage<Context>[]) {
    this.#stages = stages;
  }

  static of<Context, In extends object>(): Pipeline<Context, In> {
    return new Pipeline<Context, In>([]);
  }

  /** Returns the pipeline with one more stage appended. */
  stage<Added extends object>(
    name: string,
    run: (state: Out, context: Context) => Outcome<Added>,
  ): Pipeline<Context, In, Out & Added> {
    return new Pipeline<Context, In, Out & Added>([...this.#stages, { name, run }]);
  }

  /** Names of the stages, in order. */
  get names(): readonly string[] {
    return this.#stages.map(({ name }) => name);
  }

  run(input: In, context: Context, driver: Driver<In, Out>): void {
    this.#from(0, { ...input }, context, driver);
  }

  #from(first: number, state: In, context: Context, driver: Driver<In, Out>): void {
    for (let index = first; index < this.#stages.length; index += 1) {
      const outcome = runStage(this.#stages[index] as Stage<Context>, state, context);
      if (outcome instanceof Promise) {
        driver.when(outcome.catch(asRefusal), (late) => {
          if (late instanceof Refusal) driver.refused(late, state);
          else this.#from(index + 1, Object.assign(state, late), context, driver);
        });
        return;
      }
      if (outcome instanceof Refusal) {
        driver.refused(outcome, state);
        return;
      }
      Object.assign(state, outcome);
    }
    driver.done(state as Out);
  }
}

function runStage<Context>(
  stage: Stage<Context>,
  state: object,
  context: Context,
): Outcome<object> {
  try {
    // The builder has checked that the preceding stages add everything that this one reads.
    return stage.run(state as never, context);
  } catch (error) {
    return asRefusal(error);
  }
}

/** A malformed request is refused; other errors are not the client's. */
function asRefusal(error: unknown): Refusal {
  if (!(error instanceof BadRequestError)) throw error;
  return new Refusal(publicError(error.code, error.message, error.param));
}
