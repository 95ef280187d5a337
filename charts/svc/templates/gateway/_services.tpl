{{- /* Without Redis each pod counts alone, so a client should always reach the same one. */ -}}
{{- define "svc.sessionAffinity" -}}
sessionAffinity: {{ ternary "None" "ClientIP" .Values.redis.enabled }}
{{- end }}

{{- /* What the external listener serves. */ -}}
{{- define "svc.externalPaths" -}}
[/ext, /webhooks, /agents, /sessions]
{{- end }}
