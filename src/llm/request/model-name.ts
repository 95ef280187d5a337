/** Model names: client-supplied names become labels, log fields and parts of paths. */
import { MAX_MODEL_NAME, MODEL_NAME } from "../../resources/model-names.ts";
import { BadRequestError } from "../dialects/dialect.ts";

/** @throws BadRequestError for an invalid name */
export function checkModelName(model: string): void {
  if (model === "") throw new BadRequestError("model must be a non-empty string", "model");
  if (model.length > MAX_MODEL_NAME) {
    throw new BadRequestError(
      `model must have at most ${MAX_MODEL_NAME} characters; it has ${model.length}`,
      "model",
    );
  }
  if (!MODEL_NAME.test(model)) {
    throw new BadRequestError(
      "model must consist of visible ASCII characters without quotes, backslashes and *",
      "model",
    );
  }
}
