{{- define "svc.monitorLabels" -}}
{{ include "svc.labels" . }}
{{- with .monitor.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
