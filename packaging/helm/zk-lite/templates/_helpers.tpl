{{- define "zk-lite.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "zk-lite.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "zk-lite.labels" -}}
{{ include "zk-lite.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "zk-lite.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "zk-lite.authSecret" -}}
{{ .Values.authSecret | default (printf "%s-auth" (include "zk-lite.fullname" .)) }}
{{- end -}}

{{- /* The domain of the pods' names. */ -}}
{{- define "zk-lite.domain" -}}
{{ include "zk-lite.fullname" . }}-headless.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}

{{- /* What zoo.cfg has besides the list of servers: a change of it restarts the pods, one of the list does not. */ -}}
{{- define "zk-lite.settings" -}}
{{- $config := omit .Values.config "admin.identities" -}}
dataDir=/data
standaloneEnabled=false
quorumListenOnAllIPs=true
peer.joinSecretFile=/etc/zk-lite/auth/join-secret
http.tokenFile=/etc/zk-lite/auth/tokens
admin.identities=token:chart{{ with index .Values.config "admin.identities" }};{{ . }}{{ end }}
admin.serverAddress=0.0.0.0
admin.serverPort=8080
{{- if .Values.tls.plain }}
clientPort=2181
{{- end }}
{{- if .Values.tls.secretName }}
secureClientPort=2281
ssl.keyStore.location=/etc/zk-lite/tls/{{ .Values.tls.keyStore }}
ssl.trustStore.location=/etc/zk-lite/tls/{{ .Values.tls.trustStore }}
ssl.clientAuth={{ .Values.tls.clientAuth }}
admin.forceHttps={{ .Values.tls.http }}
{{- end }}
{{- range $key, $value := $config }}
{{ $key }}={{ ternary $value (toJson $value) (kindIs "string" $value) }}
{{- end }}
{{- end -}}

{{- /* How the commands of hooks reach the HTTP port at these hosts. */ -}}
{{- define "zk-lite.httpEnv" -}}
{{- $scheme := ternary "https" "http" .root.Values.tls.http -}}
- name: ZK_LITE_HTTP
  value: {{ range $i, $host := .hosts }}{{ if $i }},{{ end }}{{ $scheme }}://{{ $host }}:8080{{ end }}
{{- if .root.Values.tls.http }}
- name: ZK_LITE_TLS_CA
  value: /etc/zk-lite/tls/{{ .root.Values.tls.trustStore }}
- name: ZK_LITE_TLS_SERVER_NAME
  value: {{ include "zk-lite.fullname" .root }}.{{ .root.Release.Namespace }}.svc
{{- end }}
{{- end -}}

{{- define "zk-lite.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "zk-lite.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "zk-lite.secretMounts" -}}
- {name: auth, mountPath: /etc/zk-lite/auth, readOnly: true}
{{- if .Values.tls.secretName }}
- {name: tls, mountPath: /etc/zk-lite/tls, readOnly: true}
{{- end }}
{{- end -}}

{{- define "zk-lite.secretVolumes" -}}
- name: auth
  secret: {secretName: {{ include "zk-lite.authSecret" . }}, defaultMode: 0440}
{{- if .Values.tls.secretName }}
- name: tls
  secret: {secretName: {{ .Values.tls.secretName }}, defaultMode: 0440}
{{- end }}
{{- end -}}
