{{- /* Reference of an image: (dict "root" $ "registry" R "repository" N "tag" T "digest" D). */ -}}
{{- define "svc.imageReference" -}}
{{- $registry := default .registry .root.Values.global.imageRegistry | trimSuffix "/" }}
{{- with $registry }}{{ . }}/{{ end }}{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end }}

{{- /* Reference of one of Svc's images: (dict "root" $ "image" "proxy"). */ -}}
{{- define "svc.image" -}}
{{- $images := .root.Values.images }}
{{- $image := get $images .image }}
{{- include "svc.imageReference" (dict "root" .root "registry" $images.registry "repository" $image.repository
  "tag" (default .root.Chart.AppVersion $images.tag) "digest" $image.digest) }}
{{- end }}

{{- /* Names of the pull Secrets, as JSON. */ -}}
{{- define "svc.pullSecretNames" -}}
{{- concat .Values.global.imagePullSecrets .Values.images.pullSecrets | uniq | toJson }}
{{- end }}

{{- define "svc.imagePullSecrets" -}}
{{- with include "svc.pullSecretNames" . | fromJsonArray }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}
