// Package helm renders the Helm chart in the directory zk-lite, as Helm does, into Kubernetes' own types. It is for
// tests: of the chart, and of servers that run as the chart configures them. It talks to no cluster and starts no
// goroutine.
package helm

import (
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Chart is the directory of the chart. Name and Namespace are those of the release that is rendered.
const (
	Chart     = "zk-lite"
	Name      = "zk-lite"
	Namespace = "apps"
)

// Monitors is the API of ServiceMonitor, a type that is not Kubernetes' own.
const Monitors = "monitoring.coreos.com/v1"

// Release is the output of the chart.
type Release struct {
	ConfigMap         *corev1.ConfigMap
	Secret            *corev1.Secret // nil: named in the values
	Headless, Service *corev1.Service
	StatefulSet       *appsv1.StatefulSet
	Budget            *policyv1.PodDisruptionBudget
	Policy            *networkingv1.NetworkPolicy // nil: none
	Monitor           *unstructured.Unstructured  // nil: none
	ScaleDown         *batchv1.Job                // nil: no server leaves
	Notes             string
}

// Render renders the chart with values besides its own. live is the present release in the cluster: nil at an
// installation, empty for an upgrade that looks at no cluster, as `helm template --is-upgrade` does. apis are those
// that the cluster has besides Kubernetes' own.
//
// It returns errors of the values' schema and of the templates, and refuses what Kubernetes would refuse: unknown
// and repeated fields.
func Render(values map[string]any, live *Release, apis ...string) (*Release, error) {
	chart, err := loader.LoadDir(Chart)
	if err != nil {
		return nil, err
	}
	caps := common.DefaultCapabilities.Copy()
	caps.APIVersions = append(caps.APIVersions, apis...)
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{
		Name: Name, Namespace: Namespace, Revision: 1, IsInstall: live == nil, IsUpgrade: live != nil,
	}, caps)
	if err != nil {
		return nil, err
	}
	files, err := engine.RenderWithClientProvider(chart, all, lookups{live})
	if err != nil {
		return nil, err
	}
	r := &Release{}
	for name, text := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			r.Notes = text
			continue
		}
		for _, document := range strings.Split(text, "\n---\n") {
			if err := r.add(document); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
		}
	}
	return r, nil
}

// strict refuses fields that Kubernetes does not know.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// add decodes one object.
func (r *Release) add(document string) error {
	var kind struct{ APIVersion string }
	if err := yaml.Unmarshal([]byte(document), &kind); err != nil || kind.APIVersion == "" {
		return err // an empty document, with or without comments
	}
	if kind.APIVersion == Monitors {
		r.Monitor = &unstructured.Unstructured{}
		return yaml.UnmarshalStrict([]byte(document), &r.Monitor.Object)
	}
	object, _, err := strict.Decode([]byte(document), nil, nil)
	if err != nil {
		return err
	}
	switch x := object.(type) {
	case *corev1.ConfigMap:
		r.ConfigMap = x
	case *corev1.Secret:
		r.Secret = x
	case *corev1.Service:
		if x.Spec.ClusterIP == corev1.ClusterIPNone {
			r.Headless = x
		} else {
			r.Service = x
		}
	case *appsv1.StatefulSet:
		r.StatefulSet = x
	case *policyv1.PodDisruptionBudget:
		r.Budget = x
	case *networkingv1.NetworkPolicy:
		r.Policy = x
	case *batchv1.Job:
		r.ScaleDown = x
	default:
		return fmt.Errorf("the chart has an object that nobody expects: %T", x)
	}
	return nil
}

// lookups answers the templates' function lookup from the present release.
type lookups struct{ live *Release }

// GetClientFor implements engine.ClientProvider.
func (l lookups) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	group, err := schema.ParseGroupVersion(apiVersion)
	var objects []runtime.Object
	if l.live != nil && l.live.StatefulSet != nil {
		set := l.live.StatefulSet.DeepCopy()
		set.Namespace = Namespace // as Helm does when it sends it
		objects = append(objects, set)
	}
	if l.live != nil && l.live.Secret != nil {
		secret := l.live.Secret.DeepCopy()
		secret.Namespace = Namespace
		objects = append(objects, secret)
	}
	client := fake.NewSimpleDynamicClient(scheme.Scheme, objects...)
	return client.Resource(group.WithResource(strings.ToLower(kind) + "s")), true, err
}
