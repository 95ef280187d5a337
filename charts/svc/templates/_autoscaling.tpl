{{- /* A HorizontalPodAutoscaler of a Deployment: (dict "root" $ "component" C "values" V). */ -}}
{{- define "svc.horizontalPodAutoscaler" -}}
{{- with .values.autoscaling }}
{{- if .enabled -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ include "svc.fullname" $.root }}-{{ $.component }}
  namespace: {{ $.root.Release.Namespace }}
  labels:
    {{- include "svc.labels" $ | nindent 4 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "svc.fullname" $.root }}-{{ $.component }}
  minReplicas: {{ int64 .minReplicas }}
  maxReplicas: {{ int64 .maxReplicas }}
  metrics:
    {{- if .targetCPUUtilizationPercentage }}
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ int64 .targetCPUUtilizationPercentage }}
    {{- end }}
    {{- if .targetMemoryUtilizationPercentage }}
    - type: Resource
      resource:
        name: memory
        target:
          type: Utilization
          averageUtilization: {{ int64 .targetMemoryUtilizationPercentage }}
    {{- end }}
  {{- with .behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
