{{- define "fairlead.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "fairlead.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/name: fairlead
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Labels that select the pods of a component: (dict "root" $ "component" "serve"). */}}
{{- define "fairlead.selector" -}}
app.kubernetes.io/name: fairlead
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "fairlead.configMap" -}}
{{- default (printf "%s-settings" (include "fairlead.name" .)) .Values.settings.existingConfigMap }}
{{- end }}

{{/*
A pod of a component that runs one command. The migration gets no settings and no service account, because it runs
before those of this release exist. Arguments:
(dict "root" $ "component" "serve" "command" (list ...) "postgresKey" "..." "extra" "YAML of the container" "state" "a claim").
Without postgresKey the pod has no database. It meets the level Restricted of the Pod Security Standards.
*/}}
{{- define "fairlead.pod" -}}
{{- $root := .root }}
{{- $values := .root.Values }}
metadata:
  labels:
    {{- include "fairlead.selector" . | nindent 4 }}
  annotations:
    checksum/settings: {{ $values.settings.text | sha256sum }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- if ne .component "migrate" }}
  serviceAccountName: {{ include "fairlead.name" $root }}
  {{- end }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  restartPolicy: {{ default "Always" .restartPolicy }}
  {{- with $values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: {{ .component }}
      image: "{{ $values.image.repository }}:{{ default $root.Chart.AppVersion $values.image.tag }}"
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: {{ toJson .command }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      env:
        {{- if ne .component "migrate" }}
        - {name: FAIRLEAD_CONFIG, value: /etc/fairlead/fairlead.toml}
        {{- end }}
        - {name: FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS, value: {{ $values.kafka.bootstrapServers | quote }}}
        {{- with $values.kafka.propertiesSecret.name }}
        - name: FAIRLEAD_KAFKA__PROPERTIES
          valueFrom:
            secretKeyRef: {name: {{ . }}, key: {{ $values.kafka.propertiesSecret.key }}}
        {{- end }}
        {{- with .postgresKey }}
        - name: FAIRLEAD_POSTGRES__URL
          valueFrom:
            secretKeyRef: {name: {{ $values.postgres.secret }}, key: {{ . }}}
        {{- end }}
        {{- with $values.serve.url }}
        - {name: FAIRLEAD_WEB__URL, value: {{ . | quote }}}
        {{- end }}
        {{- with $values.serve.dagsterUrl }}
        - {name: FAIRLEAD_WEB__DAGSTER_URL, value: {{ . | quote }}}
        {{- end }}
        {{- if and (eq .component "serve") $values.serve.headerSecret.name }}
        - name: FAIRLEAD_WEB__HEADER__SECRET
          valueFrom:
            secretKeyRef: {name: {{ $values.serve.headerSecret.name }}, key: {{ $values.serve.headerSecret.key }}}
        {{- end }}
      {{- with .extra }}
      {{- . | nindent 6 }}
      {{- end }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: state, mountPath: /var/lib/fairlead}
        {{- if ne .component "migrate" }}
        - {name: settings, mountPath: /etc/fairlead, readOnly: true}
        {{- end }}
  volumes:
    - {name: tmp, emptyDir: {}}
    {{- if .state }}
    - name: state
      persistentVolumeClaim: {claimName: {{ .state }}}
    {{- else }}
    - {name: state, emptyDir: {}}
    {{- end }}
    {{- if ne .component "migrate" }}
    - name: settings
      configMap: {name: {{ include "fairlead.configMap" $root }}}
    {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
