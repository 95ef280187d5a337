/**
 * Operations whose response is a credential. An agent that had one could call AWS without this
 * proxy, so they are refused by every policy. Listed by ids of services as in the table; derived
 * from outputs of the service models that contain a secret key, a session token, a password of a
 * service or a bearer token.
 */
const OPERATIONS: Readonly<Record<string, string>> = {
  "account-access-runtime": "GetRoleCredentials",
  acm: "ExportCertificate",
  "bedrock-agentcore":
    "GetResourceOauth2Token GetResourceApiKey GetResourcePaymentToken " +
    "GetWorkloadAccessToken GetWorkloadAccessTokenForJWT GetWorkloadAccessTokenForUserId",
  cloudwatchomni: "GetSpaceCredentialsForOrganization GetSpaceDataAccess",
  codeartifact: "GetAuthorizationToken",
  codepipeline: "GetJobDetails GetThirdPartyJobDetails PollForJobs PollForThirdPartyJobs",
  "cognito-identity": "GetCredentialsForIdentity GetOpenIdToken GetOpenIdTokenForDeveloperIdentity",
  connect: "GetFederationToken",
  datazone: "GetEnvironmentCredentials GetConnection",
  deadline:
    "AssumeFleetRoleForRead AssumeFleetRoleForWorker AssumeQueueRoleForRead " +
    "AssumeQueueRoleForUser AssumeQueueRoleForWorker",
  ec2: "GetPasswordData",
  ecr: "GetAuthorizationToken",
  "ecr-public": "GetAuthorizationToken",
  "eks-auth": "AssumeRoleForPodIdentity",
  emr: "GetClusterSessionCredentials GetSessionEndpoint",
  "emr-containers": "GetManagedEndpointSessionCredentials",
  "finspace-data": "GetProgrammaticAccessCredentials",
  gamelift:
    "CreateBuild GetComputeAccess GetComputeAuthToken GetInstanceAccess RequestUploadCredentials",
  iam:
    "CreateAccessKey CreateLoginProfile UpdateLoginProfile CreateServiceSpecificCredential " +
    "ResetServiceSpecificCredential",
  lakeformation:
    "AssumeDecoratedRoleWithSAML GetTemporaryDataLocationCredentials " +
    "GetTemporaryGlueFunctionCredentials GetTemporaryGluePartitionCredentials " +
    "GetTemporaryGlueTableCredentials",
  "license-manager": "GetAccessToken",
  lightsail:
    "CreateBucketAccessKey CreateContainerServiceRegistryLogin CreateKeyPair " +
    "DownloadDefaultKeyPair GetBucketAccessKeys GetInstanceAccessDetails " +
    "GetRelationalDatabaseMasterUserPassword",
  redshift: "GetClusterCredentials GetClusterCredentialsWithIAM",
  "redshift-serverless": "GetCredentials",
  rolesanywhere: "CreateSession",
  s3control: "GetDataAccess",
  ssm: "GetAccessToken StartSession ResumeSession",
  "sso-admin": "CreateTokenWithIAM",
  sts:
    "AssumeRole AssumeRoleWithSAML AssumeRoleWithWebIdentity AssumeRoot " +
    "GetDelegatedAccessToken GetFederationToken GetSessionToken GetWebIdentityToken",
};

const SETS = new Map(
  Object.entries(OPERATIONS).map(([service, names]) => [service, new Set(names.split(" "))]),
);

export function handsOutCredentials(service: string, operation: string): boolean {
  return SETS.get(service)?.has(operation) ?? false;
}
