package helm

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/zk-lite/zk-lite/app/config"
)

type object = map[string]any

// full has everything that the chart can make.
func full() object {
	return object{
		"replicas": 5, "config": object{"tickTime": 3000000, "admin.identities": "token:ops"},
		"tls":            object{"secretName": "certs", "http": true},
		"serviceMonitor": object{"enabled": true}, "networkPolicy": object{"clients": []any{object{"podSelector": object{}}}},
	}
}

func render(t *testing.T, values object, live *Release) *Release {
	t.Helper()
	r, err := Render(values, live, Monitors)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestChart_Lint(t *testing.T) {
	for _, values := range []object{{}, {"tls": object{"secretName": "certs", "plain": false}}} {
		for _, m := range lint.RunAll(Chart, values, Namespace).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("lint: %v, want nothing above info", m)
			}
		}
	}
}

func TestChart_ValuesThatCannotWork_AreRefused(t *testing.T) {
	for _, row := range []struct{ values, want string }{
		{`replicas: 0`, `replicas: 0 would leave no server; want 1, 3, 5, 7 or 9`},
		{`replicas: 4`, `replicas: 4 servers tolerate no more failures than 3; want 3 or 5`},
		{`replicas: 11`, `maximum: got 11, want 9`},
		{`replicas: three`, `got string, want integer`},
		{`replica: 3`, `additional properties 'replica' not allowed`},
		{`persistence: {enabled: false}`, `additional properties 'enabled' not allowed`},
		{`persistence: {size: 0}`, `got number, want string`},
		{`persistence: {size: 10GB}`, `does not match pattern`},
		{`tls: {http: true}`, `tls: http: true needs a certificate; set tls.secretName to a Secret with`},
		{`tls: {plain: false}`, `tls: plain: false needs a certificate; set tls.secretName`},
		{`tls: {clientAuth: maybe}`, `value must be one of 'need', 'want', 'none'`},
		{`podDisruptionBudget: {maxUnavailable: 2}`, `2 of 3 servers are no minority, and node drains would stop the`},
		{`podDisruptionBudget: {maxUnavailable: 0}`, `minimum: got 0, want 1`},
		{`config: {server.7: "h:1:2"}`, `config: server.7 is set by the chart; take it out`},
		{`config: {"a b": 1}`, `does not match pattern`},
		{`config: {tickTime: "1\n2"}`, `does not match pattern`},
		{`config: {admin.needClientAuth: true}`, `the kubelet, which has no certificate, cannot probe; take it out`},
		{`terminationGracePeriodSeconds: 1`, `minimum: got 1, want 30`},
		{`serviceMonitor: {enabled: true}`, `the cluster has no monitoring.coreos.com/v1; install`},
	} {
		var values object
		if err := yaml.Unmarshal([]byte(row.values), &values); err != nil {
			t.Fatal(err)
		}
		if _, err := Render(values, nil); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v; want %s", row.values, err, row.want)
		}
	}
}

// A setting that the chart makes is not to be given twice.
func TestChart_OwnSettings_AreItsAlone(t *testing.T) {
	for _, line := range strings.Split(render(t, full(), nil).ConfigMap.Data["zoo.cfg"], "\n") {
		key, _, _ := strings.Cut(line, "=")
		if slices.Contains([]string{"", "tickTime", "admin.identities"}, key) {
			continue
		}
		if _, err := Render(object{"config": object{key: "x"}}, nil); err == nil || !strings.Contains(err.Error(), "take it out") {
			t.Errorf("config: %s: %v", key, err)
		}
	}
}

// The schema names every value, and no other.
func TestChart_Schema(t *testing.T) {
	var schema struct{ Properties object }
	text, err := os.ReadFile(filepath.Join(Chart, "values.schema.json"))
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	values := object{}
	if err == nil {
		if text, err = os.ReadFile(filepath.Join(Chart, "values.yaml")); err == nil {
			err = yaml.Unmarshal(text, &values)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	values["global"] = nil // which Helm adds
	compare(t, "the chart", schema.Properties, values)
	for name, property := range schema.Properties {
		if inner, ok := property.(object)["properties"].(object); ok {
			compare(t, name, inner, values[name].(object))
		}
	}
}

func compare(t *testing.T, of string, schema, values object) {
	t.Helper()
	if a, b := slices.Sorted(maps.Keys(schema)), slices.Sorted(maps.Keys(values)); !slices.Equal(a, b) {
		t.Errorf("%s: the schema has %v, values.yaml %v", of, a, b)
	}
}

// Every server reads its zoo.cfg without an error or a warning, and finds itself in it.
func TestChart_Settings(t *testing.T) {
	for _, values := range []object{{"replicas": 1}, {}, full(), {"tls": object{"secretName": "c", "plain": false}}} {
		r := render(t, values, nil)
		file := filepath.Join(t.TempDir(), "zoo.cfg")
		if err := os.WriteFile(file, []byte(r.ConfigMap.Data["zoo.cfg"]), 0o600); err != nil {
			t.Fatal(err)
		}
		for id := range int(*r.StatefulSet.Spec.Replicas) {
			env := map[string]string{"ZK_LITE_CONFIG": file, "ZK_LITE_MYID": string(rune('0' + id))}
			s, notices, err := config.Load(nil, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
			if err != nil || len(notices) > 0 {
				t.Fatalf("%v: error %v, notices %v; want none\n%s", values, err, notices, r.ConfigMap.Data["zoo.cfg"])
			}
			own, _ := s.Own()
			if want := "zk-lite-" + env["ZK_LITE_MYID"] + ".zk-lite-headless.apps.svc.cluster.local:2888"; len(s.Servers) != int(*r.StatefulSet.Spec.Replicas) ||
				s.Standalone || !strings.HasSuffix(own.PeerAddress(), want) {
				t.Errorf("server %d of %d is at %s", id, len(s.Servers), own.PeerAddress())
			}
		}
	}
}

// What refers to something by a name, a label or a port finds it.
func TestChart_Manifests(t *testing.T) {
	for _, values := range []object{{}, full(), {"authSecret": "mine", "fullnameOverride": strings.Repeat("x", 60)}} {
		r := render(t, values, &Release{})
		pod, hook := &r.StatefulSet.Spec.Template, &r.ScaleDown.Spec.Template
		for name, selector := range map[string]*metav1.LabelSelector{
			"StatefulSet": r.StatefulSet.Spec.Selector, "budget": r.Budget.Spec.Selector, "policy": &r.Policy.Spec.PodSelector,
			"service": {MatchLabels: r.Service.Spec.Selector}, "headless": {MatchLabels: r.Headless.Spec.Selector},
			"spread": pod.Spec.TopologySpreadConstraints[0].LabelSelector,
		} {
			s, err := metav1.LabelSelectorAsSelector(selector)
			if err != nil || !s.Matches(labels.Set(pod.Labels)) || s.Matches(labels.Set(hook.Labels)) {
				t.Errorf("%s: selects %v (%v)", name, s, err)
			}
		}
		if peers := r.Policy.Spec.Ingress[0]; labels.SelectorFromSet(peers.From[0].PodSelector.MatchLabels).Matches(labels.Set(hook.Labels)) == false {
			t.Error("the hook does not reach the servers")
		}
		if r.StatefulSet.Spec.ServiceName != r.Headless.Name || !r.Headless.Spec.PublishNotReadyAddresses ||
			r.StatefulSet.Spec.PodManagementPolicy != "Parallel" || r.Budget.Spec.MaxUnavailable.IntValue() != 1 {
			t.Error("the pods do not find each other, or do not start together, or are not protected")
		}
		names := []string{}
		for _, p := range pod.Spec.Containers[0].Ports {
			names = append(names, p.Name)
		}
		for _, p := range slices.Concat(r.Service.Spec.Ports, r.Headless.Spec.Ports) {
			if !slices.Contains(names, p.TargetPort.String()) {
				t.Errorf("no container has the port %v", p.TargetPort)
			}
		}
		for _, spec := range []*corev1.PodSpec{&pod.Spec, &hook.Spec} {
			volumes := []string{"data"}
			for _, v := range spec.Volumes {
				volumes = append(volumes, v.Name)
			}
			c := spec.Containers[0]
			for _, m := range c.VolumeMounts {
				if !slices.Contains(volumes, m.Name) {
					t.Errorf("no volume %s", m.Name)
				}
			}
			if !*c.SecurityContext.ReadOnlyRootFilesystem || !*spec.SecurityContext.RunAsNonRoot || *spec.AutomountServiceAccountToken {
				t.Errorf("%+v may too much", spec)
			}
		}
		if len(r.StatefulSet.Name) > 52 { // Kubernetes adds ten characters and a number
			t.Errorf("%s is too long", r.StatefulSet.Name)
		}
	}
}

// More servers, or fewer, restart none; a changed setting restarts all, one after the other.
func TestChart_Restarts(t *testing.T) {
	template := func(values object) corev1.PodTemplateSpec { return render(t, values, nil).StatefulSet.Spec.Template }
	if was := template(object{}); !reflect.DeepEqual(was, template(object{"replicas": 1})) ||
		reflect.DeepEqual(was, template(object{"config": object{"tickTime": 1000}})) {
		t.Error("the pods restart with another number of servers, or not with another setting")
	}
}

// The secret stays what it was, and members leave before their pods do.
func TestChart_Upgrade(t *testing.T) {
	five := render(t, object{"replicas": 5}, nil)
	if five.ScaleDown != nil {
		t.Error("an installation removes members")
	}
	if again := render(t, object{"replicas": 5}, five); again.ScaleDown != nil ||
		!reflect.DeepEqual(again.Secret.Data, five.Secret.Data) {
		t.Error("an upgrade removes members that stay, or changes the secret")
	}
	job := render(t, object{}, five).ScaleDown
	if job == nil || job.Annotations["helm.sh/hook"] != "pre-upgrade,post-upgrade" {
		t.Fatalf("no members leave: %+v", job)
	}
	c := job.Spec.Template.Spec.Containers[0]
	if c.Args[3] != "3" || strings.Count(c.Env[0].Value, "http://") != 3 {
		t.Errorf("%v removes at %s", c.Args, c.Env[0].Value)
	}
	if r := render(t, object{"authSecret": "mine"}, five); r.Secret != nil ||
		r.StatefulSet.Spec.Template.Spec.Volumes[1].Secret.SecretName != "mine" {
		t.Error("a secret of the user's own is not taken")
	}
}

// The chart is released with the program.
func TestChart_Version(t *testing.T) {
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## ([\d.]+)`).FindSubmatch(changes)[1]
	chart, err := os.ReadFile(filepath.Join(Chart, "Chart.yaml"))
	if want := "\nversion: " + string(newest) + "\nappVersion: " + string(newest) + "\n"; err != nil || !strings.Contains(string(chart), want) {
		t.Errorf("%s has another version than %s (%v)", Chart, newest, err)
	}
}
