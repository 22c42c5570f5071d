{{- define "avouch.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels by which the pods of a component are selected: of the root and the component's name. */}}
{{- define "avouch.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "avouch.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "avouch.labels" -}}
{{ include "avouch.selectorLabels" . }}
{{ include "avouch.commonLabels" (index . 0) }}
{{- end -}}

{{- define "avouch.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The Secret with the certificate of instances; empty if they do not relay. */}}
{{- define "avouch.instanceSecret" -}}
{{- if .Values.instances.secretName -}}
{{- .Values.instances.secretName -}}
{{- else if .Values.certificates.issuer.name -}}
{{- include "avouch.fullname" . }}-instances
{{- end -}}
{{- end -}}

{{/* The Secret with the certificate of browser hosts. */}}
{{- define "avouch.hostSecret" -}}
{{- if .Values.browserHosts.secretName -}}
{{- .Values.browserHosts.secretName -}}
{{- else if .Values.certificates.issuer.name -}}
{{- include "avouch.fullname" . }}-browsers
{{- end -}}
{{- end -}}

{{- define "avouch.instanceName" -}}
{{- .Values.settings.instance_name | default "instance.avouch.internal" -}}
{{- end -}}

{{- define "avouch.hostName" -}}
{{- .Values.settings.browser_host_name | default "browser-host.avouch.internal" -}}
{{- end -}}

{{/* Whether browsers run on hosts, of this chart or of others; empty if not. */}}
{{- define "avouch.usesHosts" -}}
{{- if or .Values.browserHosts.enabled (hasKey .Values.settings "browser_hosts") }}true{{ end -}}
{{- end -}}

{{/* Whether the pods of a component run browsers in the sandbox; empty if not. */}}
{{- define "avouch.isSandboxed" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- if $root.Values.browserSandbox -}}
{{- if eq $component "browser-host" }}true
{{- else if and (eq $component "service") (not (include "avouch.usesHosts" $root)) }}true
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The sessions with a browser in one instance: all slots of the hosts, shared by as few instances as there
may be. What is too much waits in the queue.
*/}}
{{- define "avouch.instanceBrowsers" -}}
{{- $hosts := .Values.browserHosts.replicas -}}
{{- if .Values.browserHosts.autoscaling.enabled -}}
{{- $hosts = .Values.browserHosts.autoscaling.maxReplicas -}}
{{- end -}}
{{- $instances := .Values.replicas -}}
{{- if .Values.autoscaling.enabled -}}
{{- $instances = .Values.autoscaling.minReplicas -}}
{{- end -}}
{{- $slots := mul $hosts .Values.browserHosts.browsers -}}
{{- min 1000 (div (sub (add $slots $instances) 1) $instances) -}}
{{- end -}}

{{/* The parts that all pods have in common: of the root and the component's name. */}}
{{- define "avouch.podSecurity" -}}
{{- $root := index . 0 -}}
automountServiceAccountToken: false
# Variables of services called avouch would look like settings.
enableServiceLinks: false
{{- if include "avouch.isSandboxed" . }}
# /proc is not masked below, which the API permits only in a user namespace.
hostUsers: false
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "avouch.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- if include "avouch.isSandboxed" . }}
{{- $root := index . 0 }}
# The sandbox of a browser mounts a /proc of its own, which the kernel refuses where parts of the
# container's are masked.
procMount: Unmasked
seccompProfile:
  type: Localhost
  localhostProfile: {{ $root.Values.seccompProfile | quote }}
appArmorProfile:
  {{- toYaml $root.Values.appArmorProfile | nindent 2 }}
{{- else }}
seccompProfile:
  type: RuntimeDefault
{{- end }}
{{- end -}}

{{/* The variable of a setting. The names that OpenTelemetry specifies have no prefix. */}}
{{- define "avouch.variable" -}}
{{- if not (hasPrefix "otel_" .) }}AVOUCH_{{ end }}{{ upper . }}
{{- end -}}

{{/* A setting. Numbers of values are floating-point numbers, which are printed with an exponent. */}}
{{- define "avouch.setting" -}}
{{- $value := index . 1 -}}
- name: {{ include "avouch.variable" (index . 0) }}
  value: {{ if kindIs "string" $value }}{{ quote $value }}{{ else }}{{ $value | int64 | quote }}{{ end }}
{{- end -}}

{{/* The settings of every process. */}}
{{- define "avouch.commonEnvironment" -}}
- name: AVOUCH_DRAIN_SECONDS
  value: {{ .Values.drainSeconds | int64 | quote }}
{{- if .Values.metrics.enabled }}
- name: AVOUCH_METRICS_LISTEN
  value: 0.0.0.0:{{ .Values.metrics.port | int64 }}
{{- end }}
{{- if not (hasKey .Values.settings "log_format") }}
- name: AVOUCH_LOG_FORMAT
  value: json
{{- end }}
{{- end -}}

{{/* How a process is reached by others, of the port. */}}
{{- define "avouch.identityEnvironment" -}}
- name: AVOUCH_INSTANCE_LISTEN
  value: 0.0.0.0:{{ . | int64 }}
- name: AVOUCH_INSTANCE_CERT
  value: /run/secrets/instances/tls.crt
- name: AVOUCH_INSTANCE_KEY
  value: /run/secrets/instances/tls.key
- name: AVOUCH_INSTANCE_ROOTS
  value: /run/secrets/instances/ca.crt
{{- end -}}

{{/*
What a browser host knows. Settings are those in this list: whatever else is added to the service, a host
does not get it.
*/}}
{{- define "avouch.hostEnvironment" -}}
{{ include "avouch.commonEnvironment" . }}
- name: AVOUCH_BROWSERS
  value: {{ .Values.browserHosts.browsers | int64 | quote }}
{{ include "avouch.identityEnvironment" .Values.browserHosts.port }}
{{- range $name := list "region" "instance_name" "browser_host_name" "browser_memory_mb" "egress_roots" "log" "log_format" }}
{{- if hasKey $.Values.settings $name }}
{{ include "avouch.setting" (list $name (get $.Values.settings $name)) }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The roles of instances; empty if they have all. */}}
{{- define "avouch.roles" -}}
{{- $hosts := include "avouch.usesHosts" . -}}
{{- if or $hosts .Values.delivery.enabled -}}
api{{ if not $hosts }},browser{{ end }}{{ if not .Values.delivery.enabled }},delivery{{ end }}
{{- end -}}
{{- end -}}

{{/* The secret settings of a component, by their names: only instances have to do with browsers. */}}
{{- define "avouch.secretFiles" -}}
{{- $root := index . 0 -}}
{{- if eq (index . 1) "service" -}}
{{- toYaml $root.Values.secrets.files -}}
{{- else -}}
{{- toYaml (omit $root.Values.secrets.files "browser" "egress_proxy") -}}
{{- end -}}
{{- end -}}

{{/* What a process with the database knows: of the root and the component's name. */}}
{{- define "avouch.environment" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $settings := $root.Values.settings -}}
{{- if ne $component "service" -}}
{{- /* Refused without a certificate, or of no use without one. */ -}}
{{- $settings = omit $settings "browsers" "instance_name" "browser_hosts" "browser_host_name" -}}
{{- end -}}
- name: AVOUCH_LISTEN
  value: 0.0.0.0:8080
- name: AVOUCH_DATA_DIR
  value: /var/lib/avouch
{{ include "avouch.commonEnvironment" $root }}
{{- if $root.Values.migration.enabled }}
- name: AVOUCH_MIGRATE
  value: never
{{- end }}
{{- if and (not $root.Values.browserSandbox) (ne $component "delivery") }}
- name: AVOUCH_BROWSER_JAIL
  value: "off"
{{- end }}
{{- if eq $component "service" }}
{{- with include "avouch.roles" $root }}
- name: AVOUCH_ROLE
  value: {{ . }}
{{- end }}
{{- if include "avouch.instanceSecret" $root }}
- name: POD_IP
  valueFrom:
    fieldRef: { fieldPath: status.podIP }
- name: AVOUCH_INSTANCE_ADDRESS
  value: $(POD_IP):{{ $root.Values.instances.port | int64 }}
{{ include "avouch.identityEnvironment" $root.Values.instances.port }}
{{- end }}
{{- if $root.Values.browserHosts.enabled }}
- name: AVOUCH_BROWSER_HOSTS
  value: {{ include "avouch.fullname" $root }}-browsers:{{ $root.Values.browserHosts.port | int64 }}
{{- if not (hasKey $settings "browsers") }}
- name: AVOUCH_BROWSERS
  value: {{ include "avouch.instanceBrowsers" $root | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $value := $settings }}
{{ include "avouch.setting" (list $name $value) }}
{{- end }}
{{- range $name, $entry := include "avouch.secretFiles" . | fromYaml }}
- name: {{ include "avouch.variable" $name }}_FILE
  value: /run/secrets/avouch/{{ $name }}
{{- end }}
{{- with $root.Values.objectStore }}
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
{{- $root := index . 0 -}}
- name: data
  mountPath: /var/lib/avouch
- name: temporary
  mountPath: /tmp
- name: keys
  mountPath: /var/lib/avouch/secret.key
  subPath: secret.key
  readOnly: true
{{- if $root.Values.secrets.previousSecretKey }}
- name: keys
  mountPath: /var/lib/avouch/secret.key.old
  subPath: secret.key.old
  readOnly: true
{{- end }}
- name: settings
  mountPath: /run/secrets/avouch
  readOnly: true
{{- if and (eq (index . 1) "service") (include "avouch.instanceSecret" $root) }}
- name: instances
  mountPath: /run/secrets/instances
  readOnly: true
{{- end }}
{{- end -}}

{{- define "avouch.volumes" -}}
{{- $root := index . 0 -}}
{{- $secret := required "secrets.name is the Secret with secret.key and the secret settings" $root.Values.secrets.name -}}
- name: data
  emptyDir:
    sizeLimit: {{ $root.Values.temporaryStorage.sizeLimit }}
- name: temporary
  emptyDir:
    sizeLimit: {{ $root.Values.temporaryStorage.sizeLimit }}
- name: keys
  secret:
    secretName: {{ $secret | quote }}
    defaultMode: 0440
    items:
      - { key: {{ $root.Values.secrets.secretKey | quote }}, path: secret.key }
      {{- with $root.Values.secrets.previousSecretKey }}
      - { key: {{ . | quote }}, path: secret.key.old }
      {{- end }}
- name: settings
  secret:
    secretName: {{ $secret | quote }}
    defaultMode: 0440
    items:
      {{- range $name, $entry := include "avouch.secretFiles" . | fromYaml }}
      - { key: {{ $entry | quote }}, path: {{ $name }} }
      {{- end }}
{{- if eq (index . 1) "service" }}
{{- with include "avouch.instanceSecret" $root }}
{{ include "avouch.certificateVolume" . }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
The certificate in a Secret, as cert-manager writes it. It is mounted as a folder, without a subPath, so that
a new certificate reaches the pod, which reads it again.
*/}}
{{- define "avouch.certificateVolume" -}}
- name: instances
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0440
    items:
      - { key: tls.crt, path: tls.crt }
      - { key: tls.key, path: tls.key }
      - { key: ca.crt, path: ca.crt }
{{- end -}}

{{/* Where pods run: of the root, the component's name and its values. */}}
{{- define "avouch.placement" -}}
{{- $values := index . 2 -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "avouch.selectorLabels" . | nindent 8 }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What processes with the database may connect to, beside what values name. */}}
{{- define "avouch.publicEgress" -}}
# Names, of any server: clusters differ in where it is.
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
# Platforms, endpoints of webhooks, and other public servers. The service itself refuses browsers and
# webhooks the private networks too; this rule holds for a process that is compromised.
- ports:
    - port: 1
      endPort: 65535
      protocol: TCP
  to:
    - ipBlock:
        cidr: 0.0.0.0/0
        except:
          {{- toYaml .Values.networkPolicy.privateNetworks | nindent 10 }}
    - ipBlock:
        cidr: "::/0"
        except:
          {{- toYaml .Values.networkPolicy.privateNetworks6 | nindent 10 }}
{{- end -}}
