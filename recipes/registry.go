package recipes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// The kinds of instances that Registry makes; others are those of Curator's
// ServiceType.
const (
	InstanceDynamic = "DYNAMIC" // deleted with its session
)

// Registry lists the instances of services with their addresses.
//
// Its znodes are those of Curator's service discovery: path/<service>/<id>,
// ephemeral, with a ServiceInstance as JSON. Each service is a Group.
type Registry struct {
	c    *client.Client
	path string
	opts []Option
}

// NewRegistry returns the registry at path. Options: WithACL.
func NewRegistry(c *client.Client, path string, opts ...Option) *Registry {
	return &Registry{c: c, path: path, opts: opts}
}

// Instance is one instance of a service. The fields and their JSON are those of
// Curator's ServiceInstance.
type Instance struct {
	Service    string          `json:"name"`
	ID         string          `json:"id"` // unique in the service
	Address    string          `json:"address,omitempty"`
	Port       *int            `json:"port"`    // null if there is none
	SSLPort    *int            `json:"sslPort"` // null if there is none
	Payload    json.RawMessage `json:"payload"` // whatever the application wants
	Registered int64           `json:"registrationTimeUTC"`
	Type       string          `json:"serviceType"`
	URISpec    json.RawMessage `json:"uriSpec,omitempty"` // Curator's UriSpec, kept as it is

	// FencingToken is the zxid of the registration, not part of the data.
	FencingToken int64 `json:"-"`
	// Unhealthy is that of the Member, for those who read.
	Unhealthy string `json:"-"`
}

// RegisteredAt is when the instance was registered, by its own clock.
func (i *Instance) RegisteredAt() time.Time { return time.UnixMilli(i.Registered) }

// Register announces an instance until Leave or the end of the client; if the
// session is lost, it is announced again. An empty Type is InstanceDynamic, and a
// Registered of 0 is now.
//
// Errors: client.ErrBadArguments if Service or ID cannot be the name of a znode;
// those of Group.Join.
func (r *Registry) Register(ctx context.Context, i Instance) (*Registration, error) {
	data, err := r.encode(&i)
	if err != nil {
		return nil, err
	}
	m, err := r.group(i.Service).Join(ctx, i.ID, data)
	if err != nil {
		return nil, err
	}
	return &Registration{Membership: m, r: r, instance: i}, nil
}

// Registration is an instance that is announced.
type Registration struct {
	*Membership
	r        *Registry
	instance Instance
}

// Update replaces the announced instance; Service and ID stay the same.
func (g *Registration) Update(ctx context.Context, i Instance) error {
	i.Service, i.ID = g.instance.Service, g.instance.ID
	data, err := g.r.encode(&i)
	if err != nil {
		return err
	}
	return g.Set(ctx, data)
}

func (r *Registry) encode(i *Instance) ([]byte, error) {
	for _, name := range []string{i.Service, i.ID} {
		if err := checkName(name); err != nil {
			return nil, fmt.Errorf("instance %q of service %q: %w", i.ID, i.Service, err)
		}
	}
	if i.Type == "" {
		i.Type = InstanceDynamic
	}
	if i.Registered == 0 {
		i.Registered = time.Now().UnixMilli()
	}
	return json.Marshal(i)
}

func (r *Registry) group(service string) *Group {
	return NewGroup(r.c, znode.Join(r.path, service), r.opts...)
}

// Services returns the names of the services that have, or recently had, an
// instance, sorted.
func (r *Registry) Services(ctx context.Context) ([]string, error) {
	var names []string
	err := afterSync(ctx, r.c, r.path, func() (err error) {
		names, _, err = r.c.Children(ctx, r.path)
		return err
	}, nil)
	if errors.Is(err, client.ErrNoNode) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// Instances returns the instances of a service, sorted by ID. Instances that cannot
// be decoded are not in the list; the error, then client.ErrMarshalling, names them,
// and the list is valid all the same.
func (r *Registry) Instances(ctx context.Context, service string) ([]Instance, error) {
	members, err := r.group(service).Members(ctx)
	if err != nil {
		return nil, err
	}
	return r.decode(service, members)
}

// RegistryChange is a change of the instances of a service.
type RegistryChange struct {
	Instances []Instance // all, sorted by ID
	// Err names the instances that cannot be decoded; nil if there is none.
	Err error
}

// Watch yields the instances of a service, and again whenever they change. The
// last item is an error; see Group.Watch.
func (r *Registry) Watch(
	ctx context.Context, service string,
) iter.Seq2[RegistryChange, error] {
	return func(yield func(RegistryChange, error) bool) {
		for change, err := range r.group(service).Watch(ctx) {
			if err != nil {
				yield(RegistryChange{}, err)
				return
			}
			list, err := r.decode(service, change.Members)
			if !yield(RegistryChange{list, err}, nil) {
				return
			}
		}
	}
}

func (r *Registry) decode(service string, members []Member) ([]Instance, error) {
	var list []Instance
	var bad []error
	for _, m := range members {
		var i Instance
		if err := json.Unmarshal(m.Data, &i); err != nil {
			bad = append(bad, fmt.Errorf("instance %s of service %s: %w: %w",
				m.Name, service, client.ErrMarshalling, err))
			continue
		}
		i.Service, i.ID, i.FencingToken = service, m.Name, m.FencingToken // where it is, is what it is
		i.Unhealthy = m.Unhealthy()
		list = append(list, i)
	}
	return list, errors.Join(bad...)
}
