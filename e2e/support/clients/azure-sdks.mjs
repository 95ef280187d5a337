// What agents do with Azure's SDKs for blob storage and Key Vault: one line of JSON for each try.
import { SecretClient } from "@azure/keyvault-secrets";
import { BlobServiceClient } from "@azure/storage-blob";
import { attempts } from "./attempt.mjs";

const credential = {
  getToken: () => ({ token: "agents-own", expiresOnTimestamp: Date.now() + 3_600_000 }),
};
const attempt = attempts(({ statusCode, code, details, message }) => ({
  status: statusCode,
  code: code ?? details?.errorCode,
  message,
}));

const storage = new BlobServiceClient("https://reports.blob.core.windows.net", credential);
const daily = storage.getContainerClient("daily");
const content = async (name) => (await daily.getBlobClient(name).downloadToBuffer()).toString();

for (const name of ["plain.txt", "a folder/ünï + 1.txt"]) {
  await attempt(`blob ${name}`, async () => {
    const text = `content of ${name}`;
    await daily.getBlockBlobClient(name).upload(text, Buffer.byteLength(text), {
      metadata: { origin: "a file" },
    });
    const { metadata } = await daily.getBlobClient(name).getProperties();
    return [await content(name), metadata];
  });
}
await attempt("blocks", async () => {
  const data = Buffer.from("blocks ".repeat(100_000));
  await daily.getBlockBlobClient("large").uploadData(data, {
    blockSize: 256 * 1024,
    maxSingleShotSize: 1024,
  });
  return (await content("large")) === data.toString();
});
await attempt("list", async () => {
  const names = [];
  for await (const { name } of daily.listBlobsFlat()) names.push(name);
  return names;
});
await attempt("copy", async () => {
  const source = daily.getBlobClient("plain.txt").url;
  await daily.getBlobClient("copied.txt").syncCopyFromURL(source);
  return content("copied.txt");
});
await attempt("missing", () => content("missing"));
await attempt("denied action", () => daily.getBlobClient("plain.txt").delete());
await attempt("denied container", () => storage.getContainerClient("payroll").createIfNotExists());
await attempt("denied head", () =>
  storage.getContainerClient("payroll").getBlobClient("x").getProperties(),
);
await attempt("denied copy", () =>
  daily
    .getBlobClient("taken")
    .syncCopyFromURL(storage.getContainerClient("payroll").getBlobClient("x").url),
);
await attempt("denied key", () =>
  storage.getUserDelegationKey(new Date(), new Date(Date.now() + 3_600_000)),
);

const vault = new SecretClient("https://team-vault.vault.azure.net", credential);
// The first call of a client is a probe without its body, which the vault must challenge.
await attempt("set secret", async () => (await vault.setSecret("password", "s3cret")).value);
await attempt("get secret", async () => (await vault.getSecret("password")).value);
await attempt("read first", async () => {
  const other = new SecretClient("https://team-vault.vault.azure.net", credential);
  const { value } = await other.getSecret("password");
  await other.setSecret("password", "changed");
  return [value, (await other.getSecret("password")).value];
});
await attempt("denied secret", () => vault.beginDeleteSecret("password"));
