{{- define "svc.gatewayWatchedRules" -}}
- apiGroups: [svc.io]
  resources: [agents, modelproviders, providers, accesskeys, guardbindings, sessions]
  verbs: [get, list, watch]
- apiGroups: [svc.io]
  resources: [agents/status, modelproviders/status, providers/status, accesskeys/status, guardbindings/status, sessions/status]
  verbs: [patch]
{{- end }}

{{- define "svc.gatewayOwnRules" -}}
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [svc-model-prices]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ .Values.workloadKeySecret }}]
  verbs: [get, list, watch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "svc.fullname" . }}-gateway-status]
  verbs: [get, update, patch]
# A name cannot limit the creation of an object.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
{{- end }}
