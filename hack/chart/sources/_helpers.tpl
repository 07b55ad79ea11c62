{{/* The image of operator, workers and tools. */}}
{{- define "tarsy.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The settings, with .Values.config merged over them: (list root settings). */}}
{{- define "tarsy.config" -}}
{{- $root := index . 0 -}}
{{- $text := index . 1 -}}
{{- if $root.Values.config -}}
{{- toYaml (mergeOverwrite (fromYaml $text) (dict "spec" (deepCopy $root.Values.config))) -}}
{{- else -}}
{{- $text -}}
{{- end -}}
{{- end -}}

{{/* Annotations of pods: (list root settings-of-the-pods whether-there-are-none). A change of the settings restarts pods. */}}
{{- define "tarsy.podAnnotations" -}}
{{- $root := index . 0 -}}
{{- $found := deepCopy (index . 1).podAnnotations -}}
{{- if $root.Values.config -}}
{{- $_ := set $found "checksum/config" (toJson $root.Values.config | sha256sum) -}}
{{- end -}}
{{- if $found -}}
{{- if index . 2 -}}
{{- toYaml (dict "annotations" $found) -}}
{{- else -}}
{{- toYaml $found -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The security context of pods: (list root usual). OpenShift chooses user and group itself. */}}
{{- define "tarsy.podSecurity" -}}
{{- $usual := index . 1 -}}
{{- if (index . 0).Values.openshift -}}
{{- omit $usual "runAsUser" "runAsGroup" "fsGroup" | toJson -}}
{{- else -}}
{{- toJson $usual -}}
{{- end -}}
{{- end -}}

{{/* Fields of pods: (list root settings-of-the-pods). */}}
{{- define "tarsy.pod" -}}
{{- $root := index . 0 -}}
{{- $pod := index . 1 -}}
{{- $found := dict -}}
{{- with $root.Values.imagePullSecrets }}{{- $_ := set $found "imagePullSecrets" . }}{{- end -}}
{{- with $pod.nodeSelector }}{{- $_ := set $found "nodeSelector" . }}{{- end -}}
{{- with $pod.tolerations }}{{- $_ := set $found "tolerations" . }}{{- end -}}
{{- with $pod.priorityClassName }}{{- $_ := set $found "priorityClassName" . }}{{- end -}}
{{- if $found -}}
{{- toYaml $found -}}
{{- end -}}
{{- end -}}
