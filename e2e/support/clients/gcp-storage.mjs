// What agents do with Google's client of Cloud Storage: one line of JSON for each try.
import { Storage } from "@google-cloud/storage";
import { OAuth2Client } from "google-auth-library";
import { attempts } from "./attempt.mjs";

const authClient = new OAuth2Client();
authClient.setCredentials({ access_token: "agents-own", expiry_date: Date.now() + 3_600_000 });
const storage = new Storage({ projectId: "my-project", authClient });
const attempt = attempts(({ code, message, errors }) => ({
  status: code,
  message,
  reason: errors?.[0]?.reason,
}));

const reports = storage.bucket("reports");
const content = async (name) => (await reports.file(name).download())[0].toString();

for (const name of ["plain.txt", "a folder/ünï + 1?#%.txt", "a//b", "..", "x/"]) {
  await attempt(`object ${name}`, async () => {
    await reports.file(name).save(`content of ${name}`, { resumable: false });
    return content(name);
  });
}
await attempt("resumable", async () => {
  const data = Buffer.from("resumable ".repeat(100_000));
  await reports.file("large").save(data, { resumable: true, contentType: "text/plain" });
  const [{ size, contentType }] = await reports.file("large").getMetadata();
  return [(await content("large")) === data.toString(), Number(size), contentType];
});
await attempt("list", async () => {
  const [files] = await reports.getFiles();
  return files.map(({ name }) => name);
});
await attempt("copy", async () => {
  await reports.file("plain.txt").copy(reports.file("copied.txt"));
  return content("copied.txt");
});
await attempt("missing", () => content("missing"));
await attempt("denied action", () => reports.file("plain.txt").delete());
await attempt("denied bucket", () => storage.bucket("payroll").file("x").download());
await attempt("denied copy", () =>
  reports.file("plain.txt").copy(storage.bucket("payroll").file("x")),
);
await attempt("denied key", () =>
  storage.createHmacKey("robot@my-project.iam.gserviceaccount.com"),
);
