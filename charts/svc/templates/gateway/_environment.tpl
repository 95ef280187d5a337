{{- /* The address of Redis and its credentials. Names as in the gateway's `SVC_REDIS_*` variables. */ -}}
{{- define "svc.redisEnvironment" -}}
{{- $redis := .Values.redis }}
{{- $keys := $redis.existingSecretKeys }}
- name: SVC_REDIS_URL
  {{- if $keys.url }}
  valueFrom:
    secretKeyRef:
      name: {{ $redis.existingSecret }}
      key: {{ $keys.url }}
  {{- else if $redis.externalUrl }}
  value: {{ $redis.externalUrl | quote }}
  {{- else }}
  value: {{ printf "%s://%s-redis:6379" (ternary "rediss" "redis" $redis.tls.enabled) (include "svc.fullname" .) }}
  {{- end }}
{{- if and $redis.existingSecret $keys.username }}
- name: SVC_REDIS_USERNAME
  valueFrom:
    secretKeyRef:
      name: {{ $redis.existingSecret }}
      key: {{ $keys.username }}
{{- end }}
{{- with include "svc.redisSecret" . }}
{{- if $keys.password }}
- name: SVC_REDIS_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $keys.password }}
{{- end }}
{{- end }}
{{- if $redis.tls.enabled }}
- name: SVC_REDIS_CA_FILE
  value: /etc/svc-redis/ca.crt
{{- end }}
{{- end }}
