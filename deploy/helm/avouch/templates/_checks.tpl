{{/* Refuses values that contradict each other. What is wrong with a single value is in values.schema.json. */}}
{{- define "avouch.checks" -}}
{{- $values := .Values -}}
{{- $hosts := include "avouch.usesHosts" . -}}
{{- if and $hosts (not (include "avouch.instanceSecret" .)) -}}
{{- fail "browser hosts accept instances by their certificates: set instances.secretName or certificates.issuer.name" -}}
{{- end -}}
{{- if and $hosts (hasKey $values.secrets.files "browser") -}}
{{- fail "secrets.files.browser and browser hosts exclude each other" -}}
{{- end -}}
{{- if and $hosts (hasKey $values.settings "browsers") (eq (toString $values.settings.browsers) "0") -}}
{{- fail "settings.browsers bounds the sessions that an instance has on browser hosts: with 0 none would begin" -}}
{{- end -}}
{{- if and $hosts (eq (include "avouch.instanceName" .) (include "avouch.hostName" .)) -}}
{{- fail "settings.instance_name and settings.browser_host_name must differ: hosts and instances are told apart by them" -}}
{{- end -}}
{{- with $values.certificates -}}
{{- if ge (int64 .renewBeforeHours) (int64 .durationHours) -}}
{{- fail "certificates.renewBeforeHours must be less than certificates.durationHours" -}}
{{- end -}}
{{- end -}}
{{- with $values.browserHosts -}}
{{- if .enabled -}}
{{- if not (include "avouch.hostSecret" $) -}}
{{- fail "browserHosts needs browserHosts.secretName or certificates.issuer.name" -}}
{{- end -}}
{{- if eq (include "avouch.hostSecret" $) (include "avouch.instanceSecret" $) -}}
{{- fail "browserHosts.secretName and instances.secretName must differ: a host with the key of an instance could ask other hosts for browsers" -}}
{{- end -}}
{{- if eq (include "avouch.hostSecret" $) $values.secrets.name -}}
{{- fail "browserHosts.secretName and secrets.name must differ: hosts have no secret but their certificate" -}}
{{- end -}}
{{- if hasKey $values.settings "browser_hosts" -}}
{{- fail "settings.browser_hosts names hosts elsewhere, and browserHosts are those of this chart: set one of them" -}}
{{- end -}}
{{- if not $values.browserSandbox -}}
{{- fail "browserHosts run browsers in the sandbox: browserSandbox must be true" -}}
{{- end -}}
{{- if and $values.metrics.enabled (eq (int64 .port) (int64 $values.metrics.port)) -}}
{{- fail "browserHosts.port and metrics.port must differ" -}}
{{- end -}}
{{- if and .autoscaling.enabled .autoscaling.slotsUtilization (not $values.metrics.enabled) -}}
{{- fail "browserHosts.autoscaling.slotsUtilization needs metrics.enabled" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
