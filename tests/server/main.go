// Judges objects as an API server does that is asked to create them, with its own code: strict decoding, defaults, and
// the validation of each kind. One JSON string a line comes in, a file of manifests each; one line goes out for each:
// an array of {"object": "KIND/NAMESPACE/NAME", "faults": [...]}, or {"object": ..., "unknown": true} for kinds that are
// not built in.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"sigs.k8s.io/yaml"
)

type verdict struct {
	Object  string   `json:"object"`
	Unknown bool     `json:"unknown,omitempty"`
	Faults  []string `json:"faults,omitempty"`
}

var (
	codecs  = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	decoder = codecs.UniversalDecoder(apps.SchemeGroupVersion, batch.SchemeGroupVersion, core.SchemeGroupVersion)

	// What a change elsewhere in the object changes in a fault's text.
	index       = regexp.MustCompile(`\[\d+\]`)
	otherLabels = regexp.MustCompile("Invalid value: .*: `selector` does not match")
)

// strategyOf is what the API server follows when it creates an object, with the group of its kind.
func strategyOf(object runtime.Object) (rest.RESTCreateStrategy, schema.GroupVersion) {
	appsV1 := schema.GroupVersion{Group: "apps", Version: "v1"}
	batchV1 := schema.GroupVersion{Group: "batch", Version: "v1"}
	coreV1 := schema.GroupVersion{Version: "v1"}
	switch object.(type) {
	case *apps.Deployment:
		return deployment.Strategy, appsV1
	case *apps.StatefulSet:
		return statefulset.Strategy, appsV1
	case *apps.DaemonSet:
		return daemonset.Strategy, appsV1
	case *apps.ReplicaSet:
		return replicaset.Strategy, appsV1
	case *batch.Job:
		return job.Strategy, batchV1
	case *batch.CronJob:
		return cronjob.Strategy, batchV1
	case *core.Pod:
		return pod.Strategy, coreV1
	case *core.PodTemplate:
		return podtemplate.Strategy, coreV1
	case *core.ReplicationController:
		return replicationcontroller.Strategy, coreV1
	case *core.ConfigMap:
		return configmap.Strategy, coreV1
	case *core.Secret:
		return secret.Strategy, coreV1
	case *core.ServiceAccount:
		return serviceaccount.Strategy, coreV1
	}
	return nil, schema.GroupVersion{}
}

// judge answers what is wrong with an object, and whether its kind is known.
func judge(text []byte) (faults []string, known bool) {
	object, _, err := decoder.Decode(text, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil, false
	}
	if err != nil {
		return []string{err.Error()}, true
	}
	strategy, group := strategyOf(object)
	if strategy == nil {
		return nil, false
	}
	metadata, err := meta.Accessor(object)
	if err != nil {
		return []string{err.Error()}, true
	}
	context := request.NewContext()
	if strategy.NamespaceScoped() {
		if metadata.GetNamespace() == "" {
			metadata.SetNamespace("default")
		}
		context = request.WithNamespace(context, metadata.GetNamespace())
	}
	context = request.WithRequestInfo(context, &request.RequestInfo{
		IsResourceRequest: true, Verb: "create", APIGroup: group.Group, APIVersion: group.Version,
	})
	// The ServiceAccount admission plugin does this before an object is validated.
	if pod, ok := object.(*core.Pod); ok && pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = "default"
	}
	// What an exported object may have, and no new one.
	metadata.SetResourceVersion("")
	rest.FillObjectMetaSystemFields(metadata)
	err = rest.BeforeCreate(strategy, context, object)
	if err == nil {
		return nil, true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return []string{err.Error()}, true
	}
	for _, cause := range status.Status().Details.Causes {
		fault := index.ReplaceAllString(cause.Field+": "+cause.Message, "[]")
		faults = append(faults, otherLabels.ReplaceAllString(fault, "`selector` does not match"))
	}
	return faults, true
}

// judgeAll judges an object, or those of a list.
func judgeAll(value any, verdicts []verdict) []verdict {
	object, ok := value.(map[string]any)
	if !ok {
		return verdicts
	}
	if items, ok := object["items"].([]any); ok {
		for _, item := range items {
			verdicts = judgeAll(item, verdicts)
		}
		return verdicts
	}
	text, err := json.Marshal(object)
	if err != nil {
		return append(verdicts, verdict{Faults: []string{err.Error()}})
	}
	faults, known := judge(text)
	metadata, _ := object["metadata"].(map[string]any)
	name := fmt.Sprintf("%v/%v/%v", object["kind"], metadata["namespace"], metadata["name"])
	return append(verdicts, verdict{Object: name, Unknown: !known, Faults: faults})
}

// file judges the objects of a file, cut into documents as kubectl cuts it.
func file(text string) (verdicts []verdict) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return verdicts
		}
		var value any
		if err == nil {
			err = yaml.Unmarshal(document, &value)
		}
		if err != nil {
			verdicts = append(verdicts, verdict{Faults: []string{"not read: " + err.Error()}})
			continue
		}
		verdicts = judgeAll(value, verdicts)
	}
}

func main() {
	// Whether a cluster lets privileged containers in is not for the manifest to know.
	capabilities.Setup(true, 0)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var text string
		if err := json.Unmarshal(in.Bytes(), &text); err != nil {
			panic(err)
		}
		verdicts := file(text)
		if verdicts == nil {
			verdicts = []verdict{}
		}
		if err := out.Encode(verdicts); err != nil {
			panic(err)
		}
	}
	if err := in.Err(); err != nil {
		panic(err)
	}
}
