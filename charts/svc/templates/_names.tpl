{{- define "svc.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 45 | trimSuffix "-" }}
{{- end }}

{{- /* The longest suffix of a name is "-gateway-external": 45 characters leave room for it. */ -}}
{{- define "svc.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" }}
{{- else }}
{{- $name := include "svc.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 45 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 45 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Labels that identify the pods of a component: (dict "root" $ "component" "gateway"). */ -}}
{{- define "svc.selectorLabels" -}}
app.kubernetes.io/name: {{ include "svc.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* Labels of every object of a component, without those that change with each version. */ -}}
{{- define "svc.stableLabels" -}}
{{ include "svc.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: svc
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "svc.labels" -}}
{{ include "svc.stableLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "svc.serviceAccountName" -}}
{{- default (printf "%s-%s" (include "svc.fullname" .root) .component) .values.serviceAccount.name }}
{{- end }}

{{- define "svc.auditClaim" -}}
{{- default (printf "%s-audit" (include "svc.fullname" .)) .Values.gateway.audit.persistence.existingClaim }}
{{- end }}

{{- define "svc.redisClaim" -}}
{{- default (printf "%s-redis" (include "svc.fullname" .)) .Values.redis.persistence.existingClaim }}
{{- end }}

{{- /* "true" if the chart runs Redis itself. */ -}}
{{- define "svc.redisBuiltIn" -}}
{{- if and .Values.redis.enabled (not .Values.redis.externalUrl) (not .Values.redis.existingSecretKeys.url) }}true{{ end }}
{{- end }}

{{- /* Name of the Secret with the password of Redis; empty if there is none. */ -}}
{{- define "svc.redisSecret" -}}
{{- if .Values.redis.existingSecret }}
{{- .Values.redis.existingSecret }}
{{- else if include "svc.redisBuiltIn" . }}
{{- include "svc.fullname" . }}-redis
{{- end }}
{{- end }}
