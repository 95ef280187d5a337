{{- /* Base URL of the guard service; empty if there is none. */ -}}
{{- define "svc.guardEndpoint" -}}
{{- if .Values.guard.enabled -}}
http://{{ include "svc.fullname" . }}-guard.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}:8200
{{- end }}
{{- end }}

{{- /* Reference of the image, which a team may have built upon ours, with a model in it. */ -}}
{{- define "svc.guardImage" -}}
{{- $image := .Values.guard.image }}
{{- include "svc.imageReference" (dict "root" . "registry" (default .Values.images.registry $image.registry)
  "repository" $image.repository "tag" (default (default .Chart.AppVersion .Values.images.tag) $image.tag)
  "digest" $image.digest) }}
{{- end }}

{{- /* The settings of the classifier's endpoint, for the types that ask one. */ -}}
{{- define "svc.guardUpstream" -}}
{{- if has .Values.guard.type (list "llamaGuard" "custom") }}
{{- get .Values.guard .Values.guard.type | toYaml }}
{{- end }}
{{- end }}

{{- /* Arguments after `svc guard`. */ -}}
{{- define "svc.guardArguments" -}}
{{- $guard := .Values.guard }}
- --type
- {{ $guard.type }}
- --listen
- 0.0.0.0:8200
- --drain-delay
- "5"
- --drain
- "25"
- --log-level
- {{ $guard.logLevel }}
{{- if eq $guard.type "promptGuard" }}
- --model
- {{ default "/models" $guard.promptGuard.path | quote }}
{{- with $guard.model }}
- --model-name
- {{ . | quote }}
{{- end }}
{{- else if ne $guard.type "stub" }}
{{- with $guard.model }}
- --model
- {{ . | quote }}
{{- end }}
{{- end }}
{{- with include "svc.guardUpstream" . | fromYaml }}
- --endpoint
- {{ .endpoint | quote }}
{{- if .existingSecret }}
- --auth-header
- {{ .authHeader | quote }}
- --auth-prefix
- {{ .authPrefix | quote }}
{{- end }}
{{- end }}
{{- with $guard.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "svc.guardEnvironment" -}}
{{- $guard := .Values.guard }}
{{- if and (eq $guard.type "stub") $guard.stub.patterns }}
- name: SVC_GUARD_STUB_INJECTION
  value: {{ join "," $guard.stub.patterns | quote }}
{{- end }}
{{- with include "svc.guardUpstream" . | fromYaml }}
{{- if .existingSecret }}
- name: SVC_GUARD_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .existingSecret }}
      key: {{ .existingSecretKey }}
{{- end }}
{{- end }}
{{- with $guard.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
