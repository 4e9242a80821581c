package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// StartNode starts a node, the process that serves one log to several instances, on the socket of its name, and returns once
// it serves.
func StartNode(ctx context.Context, w WorkDir, name string) (*Process, error) {
	p, err := StartProcess(w, name, LieuditCommand, "node", "--data", w.Path(name), "--listen", "unix:"+w.SocketPath(name))
	if err != nil {
		return nil, err
	}
	if _, err = p.WaitForLine(ctx, "The journal in"); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// NodeFlags returns the flags of an instance whose log is on the node of that name. Each call returns a new slice.
func (w WorkDir) NodeFlags(name string) []string {
	return []string{"--eventstore", "esdb+unix://" + w.SocketPath(name)}
}

// Instance is a process of the service.
type Instance struct {
	*Process
	API, Area, Ops string // host and port of its listeners
	DataDir        string
}

// AnyPort is an address for listening on any free port.
const AnyPort = "127.0.0.1:0"

// LaunchInstance starts an instance whose API listens at listen, and does not wait for it. Its name names its data folder, so an instance with
// an earlier name continues with the same data.
func LaunchInstance(w WorkDir, name, listen string, flags ...string) (*Process, error) {
	args := []string{LieuditCommand, "serve", "--data", w.Path(name), "--listen", listen, "--area-listen", AnyPort, "--ops-listen", AnyPort}
	return StartProcess(w, name, append(args, flags...)...)
}

// StartInstance starts an instance, and returns once its listeners are open. It may not serve yet: WaitReady waits for that.
// After an error no process is left.
func StartInstance(ctx context.Context, w WorkDir, name, listen string, flags ...string) (*Instance, error) {
	in := &Instance{DataDir: w.Path(name)}
	var err error
	if in.Process, err = LaunchInstance(w, name, listen, flags...); err != nil {
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

// WaitReady waits until /readyz answers 200, that is until every part that the instance requires works. It gives up after a minute, and at once
// if the instance has ended.
func (in *Instance) WaitReady(ctx context.Context) error {
	return in.WaitReadyWithin(ctx, processTimeout)
}

// WaitReadyWithin is WaitReady for an instance that may take longer.
func (in *Instance) WaitReadyWithin(ctx context.Context, timeout time.Duration) error {
	return Retry(ctx, timeout, 20*time.Millisecond, func() error {
		select {
		case <-in.exited:
			return backoff.Permanent(fmt.Errorf("%s ended (%v): %s", in.DataDir, in.cmd.ProcessState, in.LastStderr()))
		default:
		}
		ctx, cancel := context.WithTimeout(ctx, processTimeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+in.Ops+"/readyz", nil)
		if err != nil {
			return backoff.Permanent(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s is not ready: %s", in.DataDir, resp.Status)
		}
		if resp != nil {
			err = errors.Join(err, resp.Body.Close())
		}
		return err
	})
}

// ReadOps returns what a path of the instance's listener for health and metrics answers. Any other status than 200 is an error.
func (in *Instance) ReadOps(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+in.Ops+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s is answered %s", path, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// ReadMetric returns a metric without labels.
func (in *Instance) ReadMetric(ctx context.Context, name string) (float64, error) {
	text, err := in.ReadOps(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("the service has no metric %s", name)
}

// Retry calls try at intervals until it returns nil or a backoff.Permanent error, or until the timeout has passed, and returns its last error.
// It calls try at least once, even with a timeout of 0. Once ctx has ended it does not call try again and returns the cause of that end.
func Retry(ctx context.Context, timeout, interval time.Duration, try func() error) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, try() },
		backoff.WithBackOff(backoff.NewConstantBackOff(interval)), backoff.WithMaxElapsedTime(max(timeout, 1))) // 0 would be no limit
	return err
}

// AdminClient is a client of a service's customer area, with the operator's token. It is safe for concurrent use.
type AdminClient struct{ *adminclient.Client }

// AdminClient returns a client with the token that the first instance of a log writes into its data folder. So it fails for the other instances
// of that log.
func (in *Instance) AdminClient() (AdminClient, error) {
	token, err := ReadOperatorToken(context.Background(), in.DataDir)
	if err != nil {
		return AdminClient{}, err
	}
	c, err := adminclient.New("http://"+in.Area, token)
	return AdminClient{c}, err
}

// tokenTimeout is how long the first instance of a log may take to write its first token. It writes it in parallel with its start, so it may be
// ready first.
const tokenTimeout = 30 * time.Second

// ReadOperatorToken reads the token that the first instance of a log writes into its data folder, and waits for it.
func ReadOperatorToken(ctx context.Context, dataDir string) (token string, err error) {
	err = Retry(ctx, tokenTimeout, 20*time.Millisecond, func() error {
		text, err := os.ReadFile(filepath.Join(dataDir, "operator-token"))
		token = strings.TrimSpace(string(text))
		return err
	})
	return token, err
}

// UnlimitedQuota is a quota that no benchmark reaches.
const UnlimitedQuota = 1_000_000_000_000

// OpenAccount opens an account with a monthly quota of requests, and issues a secret key of it.
func (a AdminClient) OpenAccount(ctx context.Context, id string, name plan.Name, quota int64) (body.Key, error) {
	return a.OpenAccountOf(ctx, id, "", name, quota)
}

// OpenAccountOf is OpenAccount for a sub-client of an agency; "" means no agency.
func (a AdminClient) OpenAccountOf(ctx context.Context, id, agency string, name plan.Name, quota int64) (body.Key, error) {
	if _, err := a.Post(ctx, "/accounts", body.OpenAccount{ID: id, Name: id, Plan: name, Quota: quota, Agency: agency}); err != nil {
		return body.Key{}, err
	}
	return a.IssueKey(ctx, id, "bench")
}

// IssueKey issues a secret key of an account.
func (a AdminClient) IssueKey(ctx context.Context, account, label string) (key body.Key, err error) {
	raw, err := a.Post(ctx, adminclient.JoinPath("", "accounts", account, "keys"), body.IssueKey{Kind: token.Secret, Label: label})
	if err != nil {
		return key, err
	}
	return key, json.Unmarshal(raw, &key)
}

// catchUpTimeout is how long the read models may take to apply what a round of load wrote.
const catchUpTimeout = 10 * time.Minute

// WaitCaughtUp waits until no read model is known to be behind the log. While programs of two versions run, a read model may have a generation
// of each; it ignores a generation that nobody fills, because no instance of its version runs. It gives up at once if the service does not
// answer.
func (a AdminClient) WaitCaughtUp(ctx context.Context) error {
	return Retry(ctx, catchUpTimeout, 20*time.Millisecond, func() error {
		raw, err := a.Get(ctx, "/projections", nil)
		var all body.Projections
		if err == nil {
			err = json.Unmarshal(raw, &all)
		}
		if err != nil {
			return backoff.Permanent(err)
		}
		return findLag(all.Results)
	})
}

// findLag returns the error of a read model that is behind the log, or that nobody fills.
func findLag(generations []body.Projection) error {
	isFilled := map[string]bool{}
	for _, g := range generations {
		isFilled[g.Name] = isFilled[g.Name] || g.Owner != ""
	}
	for _, g := range generations {
		switch {
		case !isFilled[g.Name]:
			return fmt.Errorf("nobody fills read model %s", g.Name)
		case g.Owner != "" && g.Lag != nil && *g.Lag > 0:
			return fmt.Errorf("read model %s is %d positions behind the log", g.Name, *g.Lag)
		}
	}
	return nil
}

// WithoutLastUse returns an item of a list without the time of a key's last use, which requests of a run change.
func WithoutLastUse(item json.RawMessage) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(item, &fields) != nil {
		return item
	}
	delete(fields, "utilise_le")
	text, err := json.Marshal(fields)
	if err != nil {
		return item
	}
	return text
}

// Service is one ready instance, on a node if requested, in a work folder of its own.
type Service struct {
	*Instance
	WorkDir WorkDir
	Admin   AdminClient

	node *Process // nil: the log is in the instance's data folder, or on a server that was running
}

// StartService starts a service in a folder within dir, and returns once it is ready. Remove ends it; after an error nothing
// is left.
func StartService(ctx context.Context, dir string, onNode bool, flags ...string) (*Service, error) {
	workDir, err := NewWorkDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Service{WorkDir: workDir}
	if err := s.start(ctx, onNode, flags); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

// StartServiceOnServer is StartService on the log of an EventStoreDB or a node that runs already. The log may be that of an
// earlier service, whose operator's token and vault are lost.
func StartServiceOnServer(ctx context.Context, dir, url string) (*Service, error) {
	workDir, err := NewWorkDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Service{WorkDir: workDir}
	if err := s.startOnServer(ctx, url); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

// startOnServer starts the instance and has the program make an operator's token on the log. The instance knows it after its
// next look at the log.
func (s *Service) startOnServer(ctx context.Context, url string) (err error) {
	if s.Instance, err = StartInstance(ctx, s.WorkDir, "service", AnyPort, "--eventstore", url, "--accept-lost-keys"); err != nil {
		return err
	}
	if err := s.WaitReady(ctx); err != nil {
		return err
	}
	recovery, err := StartProcess(s.WorkDir, "recovery", LieuditCommand, "token", "recover", "--data", s.DataDir, "--eventstore", url)
	if err != nil {
		return err
	}
	defer recovery.Kill()
	if _, err := recovery.WaitForLine(ctx, "A new operator token"); err != nil {
		return err
	}
	if s.Admin, err = s.AdminClient(); err != nil {
		return err
	}
	return Retry(ctx, processTimeout, 20*time.Millisecond, func() error {
		_, err := s.Admin.Get(ctx, "/projections", nil)
		return err
	})
}

// NodePID returns the id of the node's process, 0 if StartService started no node.
func (s *Service) NodePID() int {
	if s.node == nil {
		return 0
	}
	return s.node.PID()
}

// start fills the service step by step, so that Remove finds what an error has left running.
func (s *Service) start(ctx context.Context, onNode bool, flags []string) (err error) {
	if onNode {
		if s.node, err = StartNode(ctx, s.WorkDir, "node"); err != nil {
			return err
		}
		flags = append(flags, s.WorkDir.NodeFlags("node")...)
	}
	if s.Instance, err = StartInstance(ctx, s.WorkDir, "service", AnyPort, flags...); err != nil {
		return err
	}
	if err := s.WaitReady(ctx); err != nil {
		return err
	}
	s.Admin, err = s.AdminClient()
	return err
}

// Remove kills the processes and removes their folder.
func (s *Service) Remove() error {
	if s.Instance != nil {
		s.Kill()
	}
	if s.node != nil {
		s.node.Kill()
	}
	return s.WorkDir.Remove()
}
