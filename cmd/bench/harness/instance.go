package harness

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// StartNode serves a journal on the socket of its name. It returns once it answers.
func StartNode(ctx context.Context, g WorkDir, name string) (*Process, error) {
	p, err := StartProcess(g, name, LieuditCommand, "node", "--data", g.Path(name), "--listen", "unix:"+g.SocketPath(name))
	if err != nil {
		return nil, err
	}
	if _, err = p.WaitForLine(ctx, "The journal in"); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Instance is one service.
type Instance struct {
	*Process
	API, Area, Ops string // host and port of its listeners
	DataDir        string // its folder
}

// StartInstance starts a service that listens for the API at listen. It returns once its listeners are open; Ready waits for
// more.
func StartInstance(ctx context.Context, g WorkDir, name, listen string, more ...string) (*Instance, error) {
	in := &Instance{DataDir: g.Path(name)}
	args := []string{LieuditCommand, "serve", "--data", in.DataDir, "--listen", listen, "--area-listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}
	var err error
	if in.Process, err = StartProcess(g, name, append(args, more...)...); err != nil {
		return nil, err
	}
	for prefix, address := range map[string]*string{"API": &in.API, "customer area": &in.Area, "health, metrics": &in.Ops} {
		if err == nil {
			*address, err = in.WaitForLine(ctx, prefix)
			*address, _, _ = strings.Cut(strings.TrimPrefix(*address, "http://"), "/")
		}
	}
	if err != nil {
		in.Kill()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return in, nil
}

// WaitReady waits until the service says that it is ready.
func (in *Instance) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, processTimeout)
	defer cancel()
	for ctx.Err() == nil {
		if in.isReady(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-in.exited:
			return fmt.Errorf("%s ended (%v): %s", in.DataDir, in.cmd.ProcessState, in.lastStderr())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s is not ready: %w", in.DataDir, ctx.Err())
}

func (in *Instance) isReady(ctx context.Context) bool {
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
