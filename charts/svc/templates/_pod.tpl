{{- /* Parts of a pod's metadata: (dict "root" $ "component" C "values" V "checksums" {name: text}). */ -}}
{{- define "svc.podMetadata" -}}
{{- $annotations := dict }}
{{- range $name, $text := .checksums }}
{{- $_ := set $annotations (printf "checksum/%s" $name) (sha256sum $text) }}
{{- end }}
{{- with merge (deepCopy .values.podAnnotations) $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
labels:
  {{- include "svc.stableLabels" . | nindent 2 }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* Parts of a pod's spec that all components have: (dict "root" $ "component" C "values" V). */ -}}
{{- define "svc.podSpec" -}}
{{- include "svc.imagePullSecrets" .root }}
enableServiceLinks: false
securityContext:
  {{- toYaml .values.podSecurityContext | nindent 2 }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  {{- $constraint := deepCopy . }}
  {{- if not .labelSelector }}
  {{- $labels := include "svc.selectorLabels" $ | fromYaml }}
  {{- $_ := set $constraint "labelSelector" (dict "matchLabels" $labels) }}
  {{- $_ := set $constraint "matchLabelKeys" (list "pod-template-hash") }}
  {{- end }}
  - {{- toYaml $constraint | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* Environment that names the pod. */ -}}
{{- define "svc.podIdentity" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- end }}

{{- define "svc.serviceAccount" -}}
{{- if .values.serviceAccount.create -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "svc.serviceAccountName" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "svc.labels" . | nindent 4 }}
  {{- with .values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
# The pods that need a token ask for it themselves.
automountServiceAccountToken: false
{{- end }}
{{- end }}

{{- define "svc.podDisruptionBudget" -}}
{{- if .values.podDisruptionBudget.enabled -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "svc.fullname" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "svc.labels" . | nindent 4 }}
spec:
  {{- $budget := .values.podDisruptionBudget }}
  {{- if ne (toString $budget.minAvailable) "" }}
  minAvailable: {{ $budget.minAvailable }}
  {{- else }}
  maxUnavailable: {{ $budget.maxUnavailable }}
  {{- end }}
  # A pod that is not ready anyway does not keep a node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "svc.selectorLabels" . | nindent 6 }}
{{- end }}
{{- end }}
