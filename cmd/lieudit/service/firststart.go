package service

import (
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
	accessschemas "lieudit/schemas/access"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// firstStart writes what the firstStart start of all leaves on the log: the operator's token and the demo account. Of
// several instances that start at once, one does; the others find it done.
type firstStart struct {
	Config
	accounts *account.Accounts
	tokens   *access.Tokens
}

// systemMetadata is who writes them.
var systemMetadata = commands.Metadata{Actor: "system", Reason: "first start"}

const operatorTokenFile = "operator-token"

// writeEvents writes them and gives the demo key, if this instance is the one that made it.
func (f firstStart) writeEvents(ctx context.Context) (demo string, err error) {
	if err := f.issueOperatorToken(ctx); err != nil || !f.Demo {
		return "", err
	}
	return f.openDemoAccount(ctx)
}

// issueOperatorToken makes sure that the log has a first issueOperatorToken token, and leaves it in the data folder of the instance
// that made it. The file is written before the log: a crash between the two is mended by the next start.
func (f firstStart) issueOperatorToken(ctx context.Context) error {
	final := filepath.Join(f.Data, operatorTokenFile)
	if _, err := os.Stat(final); err == nil {
		return nil
	}
	draft := final + ".new"
	secret, err := readOrCreateToken(draft, f.TokenPrefixes)
	if err != nil {
		return fmt.Errorf("operator token: %w", err)
	}
	_, err = f.tokens.Claim(ctx, systemMetadata, access.FirstTokenID, secret, access.TokenRequest{Role: accessschemas.RoleOperator, Label: "first operator"})
	if errors.Is(err, access.ErrAlreadyIssued) {
		fmt.Fprintf(f.Out, "The first operator token was made elsewhere: ask its holder for one (lieudit token issue).\n")
		return os.Remove(draft)
	}
	if err != nil {
		return fmt.Errorf("operator token: %w", err)
	}
	fmt.Fprintf(f.Out, "Operator token written to %s.\n", final)
	return os.Rename(draft, final)
}

// readOrCreateToken is the token in a file, which is made when it is not there.
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

// openDemoAccount opens the demo account with a key, once in the life of a log, and tells the key.
func (f firstStart) openDemoAccount(ctx context.Context) (string, error) {
	opened, err := f.accounts.OpenAccountWithKey(ctx, systemMetadata,
		account.OpenRequest{ID: "demo", Name: "Démonstration", Plan: plan.Business},
		account.KeyRequest{Kind: token.Secret, Label: "demo"})
	if errors.Is(err, account.ErrAlreadyOpen) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("demo account: %w", err)
	}
	return opened.Plaintext, nil
}

// writeFirstStart writes what the first start leaves on the log, as soon as the log can be written.
func (s *service) writeFirstStart(ctx context.Context) error {
	f, hasWarned := firstStart{s.Config, s.accounts, s.tokens}, false
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		key, err := f.writeEvents(ctx)
		if err == nil {
			if key != "" {
				s.printDemo(s.Out, key)
			}
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		if !hasWarned { // one line an incident
			s.Log.Warn("first start's records not written yet", "reason", err)
			hasWarned = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// printWelcome tells people at start where everything is and, once in the life of a log, the demo key with calls that
// work.
func (s *service) printWelcome(out io.Writer) {
	fmt.Fprintf(out, "lieudit %s\n", s.version)
	for _, line := range [][2]string{
		{"log", s.Config.describeLog()}, {"read models", s.Config.describeReadModels()}, {"addresses", s.describeVintage()}, {"address index", s.Config.describeAddressIndex()},
		{"site search", s.Config.describeSiteSearch()},
		{"API", s.api.url() + "/services/v1"}, {"customer area", s.area.url() + "/customer-area/v1"}, {"health, metrics", s.ops.url()},
	} {
		fmt.Fprintf(out, "  %-16s %s\n", line[0], line[1])
	}
}

// printDemo tells the demo key and what can be done with it.
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
}
