{{- define "avouch.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "avouch.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: service
{{- end -}}

{{- define "avouch.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "avouch.labels" -}}
{{ include "avouch.selectorLabels" . }}
{{ include "avouch.commonLabels" . }}
{{- end -}}

{{- define "avouch.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The parts of a pod that the Deployment and the migration have in common. */}}
{{- define "avouch.podSecurity" -}}
automountServiceAccountToken: false
# Variables of services called avouch would look like settings.
enableServiceLinks: false
{{- if .Values.browserSandbox }}
# /proc is not masked below, which the API permits only in a user namespace.
hostUsers: false
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "avouch.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- if .Values.browserSandbox }}
# The sandbox of a browser mounts a /proc of its own, which the kernel refuses where parts of the
# container's are masked.
procMount: Unmasked
seccompProfile:
  type: Localhost
  localhostProfile: {{ .Values.seccompProfile | quote }}
appArmorProfile:
  {{- toYaml .Values.appArmorProfile | nindent 2 }}
{{- else }}
seccompProfile:
  type: RuntimeDefault
{{- end }}
{{- end -}}

{{- define "avouch.environment" -}}
- name: AVOUCH_LISTEN
  value: 0.0.0.0:8080
- name: AVOUCH_DATA_DIR
  value: /var/lib/avouch
- name: AVOUCH_DRAIN_SECONDS
  value: {{ .Values.drainSeconds | int64 | quote }}
{{- if .Values.migration.enabled }}
- name: AVOUCH_MIGRATE
  value: never
{{- end }}
{{- if not .Values.browserSandbox }}
- name: AVOUCH_BROWSER_JAIL
  value: "off"
{{- end }}
{{- if .Values.metrics.enabled }}
- name: AVOUCH_METRICS_LISTEN
  value: 0.0.0.0:{{ .Values.metrics.port | int64 }}
{{- end }}
{{- if .Values.instances.secretName }}
- name: POD_IP
  valueFrom:
    fieldRef: { fieldPath: status.podIP }
- name: AVOUCH_INSTANCE_LISTEN
  value: 0.0.0.0:{{ .Values.instances.port | int64 }}
- name: AVOUCH_INSTANCE_ADDRESS
  value: $(POD_IP):{{ .Values.instances.port | int64 }}
- name: AVOUCH_INSTANCE_CERT
  value: /run/secrets/instances/tls.crt
- name: AVOUCH_INSTANCE_KEY
  value: /run/secrets/instances/tls.key
- name: AVOUCH_INSTANCE_ROOTS
  value: /run/secrets/instances/ca.crt
{{- end }}
{{- if not (hasKey .Values.settings "log_format") }}
- name: AVOUCH_LOG_FORMAT
  value: json
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: AVOUCH_{{ upper $name }}
  # Numbers of values are floating-point numbers, which are printed with an exponent.
  value: {{ if kindIs "string" $value }}{{ quote $value }}{{ else }}{{ $value | int64 | quote }}{{ end }}
{{- end }}
{{- range $name, $entry := .Values.secrets.files }}
- name: AVOUCH_{{ upper $name }}_FILE
  value: /run/secrets/avouch/{{ $name }}
{{- end }}
{{- with .Values.objectStore }}
{{- range $name, $value := .environment }}
- name: {{ $name }}
  value: {{ quote $value }}
{{- end }}
{{- if .secretName }}
- name: AWS_ACCESS_KEY_ID
  valueFrom:
    secretKeyRef: { name: {{ .secretName | quote }}, key: {{ .accessKeyId | quote }} }
- name: AWS_SECRET_ACCESS_KEY
  valueFrom:
    secretKeyRef: { name: {{ .secretName | quote }}, key: {{ .secretAccessKey | quote }} }
{{- end }}
{{- end }}
{{- end -}}

{{- define "avouch.volumeMounts" -}}
- name: data
  mountPath: /var/lib/avouch
- name: temporary
  mountPath: /tmp
- name: keys
  mountPath: /var/lib/avouch/secret.key
  subPath: secret.key
  readOnly: true
{{- if .Values.secrets.previousSecretKey }}
- name: keys
  mountPath: /var/lib/avouch/secret.key.old
  subPath: secret.key.old
  readOnly: true
{{- end }}
- name: settings
  mountPath: /run/secrets/avouch
  readOnly: true
{{- if .Values.instances.secretName }}
- name: instances
  mountPath: /run/secrets/instances
  readOnly: true
{{- end }}
{{- end -}}

{{- define "avouch.volumes" -}}
{{- $secret := required "secrets.name is the Secret with secret.key and the secret settings" .Values.secrets.name -}}
- name: data
  emptyDir:
    sizeLimit: {{ .Values.temporaryStorage.sizeLimit }}
- name: temporary
  emptyDir:
    sizeLimit: {{ .Values.temporaryStorage.sizeLimit }}
- name: keys
  secret:
    secretName: {{ $secret | quote }}
    defaultMode: 0440
    items:
      - { key: {{ .Values.secrets.secretKey | quote }}, path: secret.key }
      {{- with .Values.secrets.previousSecretKey }}
      - { key: {{ . | quote }}, path: secret.key.old }
      {{- end }}
- name: settings
  secret:
    secretName: {{ $secret | quote }}
    defaultMode: 0440
    items:
      {{- range $name, $entry := .Values.secrets.files }}
      - { key: {{ $entry | quote }}, path: {{ $name }} }
      {{- end }}
{{- with .Values.instances.secretName }}
- name: instances
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0440
    items:
      - { key: tls.crt, path: tls.crt }
      - { key: tls.key, path: tls.key }
      - { key: ca.crt, path: ca.crt }
{{- end }}
{{- end -}}
