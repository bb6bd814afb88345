{{- define "portcullis.name" -}}
{{- if contains .Chart.Name .Release.Name -}}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{- else -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{- define "portcullis.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "portcullis.labels" -}}
{{ include "portcullis.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "portcullis.adminSecret" -}}
{{ .Values.admin.existingSecret | default (printf "%s-admin" (include "portcullis.name" . | trunc 51)) }}
{{- end -}}

{{- define "portcullis.environmentSecret" -}}
{{ .Values.environment.existingSecret | default (printf "%s-environment" (include "portcullis.name" . | trunc 51)) }}
{{- end -}}

{{- /* The port of an address such as 0.0.0.0:8080 or [::]:8080. */ -}}
{{- define "portcullis.port" -}}
{{ regexFind "[0-9]+$" . }}
{{- end -}}
