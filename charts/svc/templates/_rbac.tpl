{{- /*
Grants rules to a component's ServiceAccount in the watched namespaces: a ClusterRole, or a Role in each of them.
(dict "root" $ "component" C "values" V "rules" YAML)
*/ -}}
{{- define "svc.watchedRules" -}}
{{- $name := printf "%s-%s" (include "svc.fullname" .root) .component }}
{{- $clusterName := printf "%s-%s" .root.Release.Namespace $name }}
{{- if .root.Values.watchNamespaces }}
{{- range .root.Values.watchNamespaces }}
{{ include "svc.roleAndBinding" (dict "kind" "Role" "name" $clusterName "namespace" . "context" $) }}
{{- end }}
{{- else }}
{{ include "svc.roleAndBinding" (dict "kind" "ClusterRole" "name" $clusterName "namespace" "" "context" .) }}
{{- end }}
{{- end }}

{{- /* Grants rules to a component's ServiceAccount in the release's namespace. */ -}}
{{- define "svc.ownRules" -}}
{{- $name := printf "%s-%s" (include "svc.fullname" .root) .component }}
{{- include "svc.roleAndBinding" (dict "kind" "Role" "name" $name "namespace" .root.Release.Namespace "context" .) }}
{{- end }}

{{- define "svc.roleAndBinding" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "svc.labels" .context | nindent 4 }}
rules:
  {{- .context.rules | trim | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "svc.labels" .context | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "svc.serviceAccountName" .context }}
    namespace: {{ .context.root.Release.Namespace }}
{{- end }}
