package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lieudit/commands"
	"lieudit/commands/access"
	"lieudit/commands/account"
	"lieudit/projections/keyring"
	accessschemas "lieudit/schemas/access"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// firstStart writes the first events of a new log: the operator's token, without which nobody could use the customer area,
// and the demo account. Of several instances that start at once one writes them; the others find them written. On a log
// that has them it writes nothing. A token or key is shown once this instance's
// key ring holds it, so that the first request with it is not refused.
type firstStart struct {
	Config
	accounts *account.Accounts
	tokens   *access.Tokens
	keyRing  *keyring.Ring
}

// systemMetadata names the author of these events for the audit: no person, and no token.
var systemMetadata = commands.Metadata{Actor: "system", Reason: "first start"}

// operatorTokenFile lies in the data folder of the instance that issued the first token. The command line reads it there.
// Its presence says that the log has the token.
const operatorTokenFile = "operator-token"

// writeEvents writes the events that are missing. It returns the demo account's key when this call opened the account,
// else "". It may be called again after an error.
func (f firstStart) writeEvents(ctx context.Context) (demo string, err error) {
	if err := f.issueOperatorToken(ctx); err != nil || !f.Demo {
		return "", err
	}
	return f.openDemoAccount(ctx)
}

// issueOperatorToken makes sure that the log has a first operator token. It writes the token into a draft file, then the
// event, and renames the file last. The log keeps only a hash, so the file comes first: after a crash in between, the next
// start claims the token of the draft again, and the same token under the same id is no conflict.
func (f firstStart) issueOperatorToken(ctx context.Context) error {
	final := filepath.Join(f.Data, operatorTokenFile)
	if kept, err := os.ReadFile(final); err == nil {
		if kind, ok := f.TokenPrefixes.KindOf(strings.TrimSpace(string(kept))); !ok || kind != token.Area {
			f.reportLostToken("it holds no token")
		}
		return nil
	}
	draft := final + ".new"
	secret, err := readOrCreateToken(draft, f.TokenPrefixes)
	if err != nil {
		return fmt.Errorf("operator token: %w", err)
	}
	issued, err := f.tokens.Claim(ctx, systemMetadata, access.FirstTokenID, secret, access.TokenRequest{Role: accessschemas.RoleOperator, Label: "first operator"})
	if errors.Is(err, access.ErrAlreadyIssued) {
		f.reportLostToken("the log has a token, which was written elsewhere or is lost")
		return os.Remove(draft)
	}
	if err == nil {
		err = f.keyRing.AwaitPosition(ctx, issued.Position)
	}
	if err != nil {
		return fmt.Errorf("operator token: %w", err)
	}
	fmt.Fprintf(f.Out, "Operator token written to %s.\n", final)
	return os.Rename(draft, final)
}

// reportLostToken says that the file with the operator token is of no use, and what to do. Beside a log on a server it is no
// incident: another instance has the file.
func (f firstStart) reportLostToken(why string) {
	const remedy = "its holder can issue another (lieudit token issue), or stop the service and run lieudit token recover"
	fmt.Fprintf(f.Out, "No operator token in %s, %s: %s.\n", operatorTokenFile, why, remedy)
	if f.EventStore == "" {
		f.Log.Warn("the operator token is lost", "file", filepath.Join(f.Data, operatorTokenFile), "reason", why, "remedy", remedy)
	}
}

// readOrCreateToken returns the token in a file. A file that is absent or holds no token gets a new one, which is synced to
// disk. Only the owner can read the file.
func readOrCreateToken(path string, prefixes token.Prefixes) (string, error) {
	if kept, err := os.ReadFile(path); err == nil {
		if text := strings.TrimSpace(string(kept)); text != "" {
			if _, ok := prefixes.KindOf(text); ok {
				return text, nil
			}
		}
	}
	text := prefixes.New(token.Area)
	out, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = out.WriteString(text + "\n")
	return text, errors.Join(err, out.Sync(), out.Close())
}

// openDemoAccount opens the demo account with a key, in one append, and returns the key. It returns "" when the log has the
// account already: the key was shown once and is not kept.
func (f firstStart) openDemoAccount(ctx context.Context) (string, error) {
	opened, err := f.accounts.OpenAccountWithKey(ctx, systemMetadata,
		account.OpenRequest{ID: "demo", Name: "Démonstration", Plan: plan.Business},
		account.KeyRequest{Kind: token.Secret, Label: "demo"})
	if errors.Is(err, refusal.AccountExists) {
		return "", nil
	}
	if err == nil {
		err = f.keyRing.AwaitPosition(ctx, opened.Position)
	}
	if err != nil {
		return "", fmt.Errorf("demo account: %w", err)
	}
	return opened.Plaintext, nil
}

// writeFirstStart writes the first events as soon as the log can be written, and prints the demo key. A log that cannot be
// reached does not end the instance: it tries until ctx ends, with pauses that grow from 100 ms to 5 s.
func (s *service) writeFirstStart(ctx context.Context) error {
	f, hasWarned := firstStart{s.Config, s.accounts, s.tokens, s.keyRing}, false
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		key, err := f.writeEvents(ctx)
		if err == nil {
			s.showDemoOnceOpen(ctx, key)
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		if !hasWarned { // one log line an incident
			s.Log.Warn("first start's records not written yet", "reason", err)
			hasWarned = true
		}
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// showDemoOnceOpen shows a demo key, if there is one, once the API can be asked with it.
func (s *service) showDemoOnceOpen(ctx context.Context, key string) {
	if key == "" {
		return
	}
	select {
	case <-s.api.opened:
		s.showDemo(key)
	case <-ctx.Done():
	}
}

// printWelcome prints what the instance runs on and where its listeners are; printAPI adds the API, which is opened last. Tests
// and the harness of cmd/bench parse these lines.
func (s *service) printWelcome(out io.Writer) {
	fmt.Fprintf(out, "lieudit %s\n", s.version)
	for _, line := range [][2]string{
		{"log", s.Config.describeLog()}, {"read models", s.Config.describeReadModels()}, {"addresses", s.describeVintage()}, {"roads", s.describeRoads()}, {"address index", s.Config.describeAddressIndex()},
		{"site search", s.Config.describeSiteSearch()},
		{"customer area", s.area.url() + "/customer-area/v1"}, {"health, metrics", s.ops.url()},
	} {
		fmt.Fprintf(out, welcomeLine, line[0], line[1])
	}
}

// welcomeLine is the form of the lines that name a part and what it is.
const welcomeLine = "  %-16s %s\n"

// printAPI prints where the API is, once that is open.
func (s *service) printAPI(out io.Writer) {
	fmt.Fprintf(out, welcomeLine, "API", s.api.url()+"/services/v1")
}

// demoFile lies in the data folder and holds what printDemo prints, where no terminal shows it: logs are kept and read by many.
const demoFile = "demo-key"

// showDemo prints the demo key on a terminal, and writes it to a file that only the owner can read where there is none.
func (s *service) showDemo(key string) {
	if s.IsTerminal {
		s.printDemo(s.Out, key)
		return
	}
	var text bytes.Buffer
	s.printDemo(&text, key)
	path := filepath.Join(s.Data, demoFile)
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		s.Log.Error("the demo account's key could not be written, and is lost", "reason", err) // the service works without it
		return
	}
	fmt.Fprintf(s.Out, "A demo account was opened. Its key is in %s.\n", path)
}

// printDemo prints the demo key and commands with it that a reader can paste into a shell.
func (s *service) printDemo(out io.Writer, key string) {
	base := s.api.url() + "/services/v1"
	fmt.Fprintf(out, `
A demo account was opened. Its key is shown this once:

  export LIEUDIT_KEY=%s

  curl %s/version
  curl -H "Authorization: Bearer $LIEUDIT_KEY" %s/me
  curl -H "Authorization: Bearer $LIEUDIT_KEY" '%s/address/autocomplete?q=rue+de+la+mairie'
  curl -H "Authorization: Bearer $LIEUDIT_KEY" '%s/address/verify?q=rue+de+la+mairie+toulouse'
  curl -H "Authorization: Bearer $LIEUDIT_KEY" -d '{"code": "boutiques"}' %s/locations/referentiels
  curl -H "Authorization: Bearer $LIEUDIT_KEY" -X PUT -d '{"nom": "Boutique de Mende", "lat": 44.5176, "lon": 3.5}' %s/locations/referentiels/boutiques/sites/mende-1
  curl -H "Authorization: Bearer $LIEUDIT_KEY" '%s/locations/search?q=mende'
`, key, base, base, base, base, base, base, base)
	if served := s.servedNetwork.Load(); served != nil && served.isDemo { // its streets are those of the demo addresses
		fmt.Fprintf(out, `  curl -H "Authorization: Bearer $LIEUDIT_KEY" '%s/route/compute?origin=rue+de+la+mairie+toulouse&destination=impasse+du+long+pre+toulouse&steps=true'
`, base)
	}
}
