import { describe, expect, test } from "vitest";
import { googleHost } from "./hosts.ts";

const shown = (host: string): string => {
  const found = googleHost(host);
  return found?.kind === "api" ? `${found.name} ${found.host}` : (found?.kind ?? "none");
};

describe("Google's hosts", () => {
  test.each([
    ["storage.googleapis.com", "storage storage.googleapis.com"],
    ["pubsub.us-central1.rep.googleapis.com", "pubsub pubsub.googleapis.com"],
    ["pubsub.europe-west12.rep.googleapis.com", "pubsub pubsub.googleapis.com"],
    ["storage.us.rep.googleapis.com", "storage storage.googleapis.com"],
    ["us-central1-aiplatform.googleapis.com", "aiplatform aiplatform.googleapis.com"],
    ["eu-aiplatform.googleapis.com", "aiplatform aiplatform.googleapis.com"],
    ["global-aiplatform.googleapis.com", "aiplatform aiplatform.googleapis.com"],
  ])("%s is %s", (host, api) => {
    expect(shown(host)).toBe(api);
  });

  test.each([
    "metadata.google.internal",
    "accounts.google.com",
    "oauth2.googleapis.com",
    "sts.googleapis.com",
    "sts.us-central1.rep.googleapis.com",
    "us-central1-sts.googleapis.com",
    "iamcredentials.googleapis.com",
    "securetoken.googleapis.com",
    "identitytoolkit.googleapis.com",
  ])("%s issues credentials", (host) => {
    expect(shown(host)).toBe("tokens");
  });

  test.each([
    "storage.mtls.googleapis.com",
    "mtls.googleapis.com",
    "bucket.storage.googleapis.com",
    "unknown.googleapis.com",
    "storage.googleapis.com.evil.example",
    "xstorage.googleapis.com",
    "storagexgoogleapis.com",
    "storage.nowhere.rep.googleapis.com",
    "storage.us-central1.rep.googleapis.com.evil.example",
    "x.storage.us-central1.rep.googleapis.com",
    "us-central-aiplatform.googleapis.com",
    "x.us-central1-aiplatform.googleapis.com",
    "us-central1-aiplatform.googleapis.com.evil.example",
    "us-central123-aiplatform.googleapis.com",
    "google.internal",
    "x.metadata.google.internal",
    "",
  ])("%j is none of them", (host) => {
    expect(shown(host)).toBe("none");
  });
});
