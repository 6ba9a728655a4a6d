{{- define "router.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "router.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "router.labels" -}}
{{ include "router.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The router's configuration: what the chart decides goes before the values. */}}
{{- define "router.config" -}}
{{- $set := dict "server" (dict "host" "0.0.0.0" "port" 8787) "manage" (dict "port" 8788) "store" (dict "url" "sqlite:/data/router.sqlite") -}}
{{- mergeOverwrite (deepCopy .Values.config) $set | toYaml -}}
{{- end }}
