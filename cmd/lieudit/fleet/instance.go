package fleet

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Node serves a journal on the socket of its name. It returns once it answers.
func Node(ctx context.Context, g Ground, name string) (*Process, error) {
	p, err := Start(g, name, "node", "--data", g.Folder(name), "--listen", "unix:"+g.Socket(name))
	if err != nil {
		return nil, err
	}
	if _, err = p.Await(ctx, "The journal in"); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Instance is one service.
type Instance struct {
	*Process
	API, Area, Ops string // host and port of its listeners
	Data           string // its folder
}

// Serve starts a service that listens for the API at listen. It returns once its listeners are open; Ready waits for
// more.
func Serve(ctx context.Context, g Ground, name, listen string, more ...string) (*Instance, error) {
	in := &Instance{Data: g.Folder(name)}
	words := []string{"serve", "--data", in.Data, "--listen", listen, "--area-listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}
	var err error
	if in.Process, err = Start(g, name, append(words, more...)...); err != nil {
		return nil, err
	}
	for begins, place := range map[string]*string{"API": &in.API, "customer area": &in.Area, "health, metrics": &in.Ops} {
		if err == nil {
			*place, err = in.Await(ctx, begins)
			*place, _, _ = strings.Cut(strings.TrimPrefix(*place, "http://"), "/")
		}
	}
	if err != nil {
		in.Kill()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return in, nil
}

// Ready waits until the service says that it is ready.
func (in *Instance) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for ctx.Err() == nil {
		if in.ready(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-in.gone:
			return fmt.Errorf("%s ended (%v): %s", in.Data, in.cmd.ProcessState, in.complaint())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s is not ready: %w", in.Data, ctx.Err())
}

func (in *Instance) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+in.Ops+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}
