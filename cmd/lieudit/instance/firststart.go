package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lieudit/commands"
	"lieudit/commands/account"
	"lieudit/commands/areatoken"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/disk/osfile"
	"lieudit/http/customerarea"
	"lieudit/projections/keyring"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// firstStart writes the first events of a new log: the operator's token, without which nobody could use the customer area,
// and the demo account. If several instances start at once, one writes them and the others find them written. On a log
// that has them it writes nothing. A token or key is shown only once this instance's key ring holds it, so that the first
// request with it is not refused.
type firstStart struct {
	Parts
	accounts *account.Accounts
	tokens   *areatoken.Tokens
	keyRing  *keyring.Ring
}

// systemMetadata names the author of these events for the audit, which is neither a person nor a token.
var systemMetadata = commands.Metadata{Actor: eventstore.SystemActor, Reason: "first start"}

// OperatorTokenFile is a file in Parts.Folder of the instance that issued the first token. The command line reads it.
// Its presence means that the token is on the log.
const OperatorTokenFile = "operator-token"

// FirstSecrets are what the first start of a new log shows its operator. What another instance made is empty.
type FirstSecrets struct {
	DemoKey string // of the demo account
	Login   string // the URL that opens one session of the operator's token
}

// writeEvents writes the missing events, and returns the secrets of those that this call wrote. It may be called again after an
// error.
func (f firstStart) writeEvents(ctx context.Context) (made FirstSecrets, err error) {
	if made.Login, err = f.issueOperatorToken(ctx); err != nil || !f.Demo {
		return made, err
	}
	made.DemoKey, err = f.openDemoAccount(ctx)
	return made, err
}

// issueOperatorToken makes sure that the log has a first operator token. It writes the token into a draft file, then the
// event, and renames the file last. The log keeps only a hash, so the file comes first: after a crash in between, the next
// start claims the token of the draft again, and the same token under the same id is not a conflict. It returns the link with
// which the operator comes in from a browser.
func (f firstStart) issueOperatorToken(ctx context.Context) (login string, err error) {
	final := filepath.Join(f.Folder, OperatorTokenFile)
	if kept, err := os.ReadFile(final); err == nil {
		if kind, ok := f.TokenPrefixes.KindOf(strings.TrimSpace(string(kept))); !ok || kind != token.Area {
			f.reportLostToken("it holds no token")
		}
		return "", nil
	}
	draft := final + ".new"
	secret, err := readOrCreateToken(draft, f.TokenPrefixes)
	if err != nil {
		return "", fmt.Errorf("operator token: %w", err)
	}
	issued, err := f.tokens.Claim(ctx, systemMetadata, areatoken.FirstTokenID, secret, areatoken.TokenRequest{Role: grant.RoleOperator, Label: "first operator"})
	if errors.Is(err, areatoken.ErrAlreadyIssued) {
		f.reportLostToken("the log has a token, which was written elsewhere or is lost")
		return "", os.Remove(draft)
	}
	if err == nil {
		err = f.keyRing.AwaitPosition(ctx, issued.Position)
	}
	if err == nil {
		login, err = f.issueLogin(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("operator token: %w", err)
	}
	fmt.Fprintf(f.Out, "Operator token written to %s.\n", final)
	return login, osfile.Rename(draft, final)
}

// issueLogin makes a link for a session of the first operator token. It makes none in a log of an older format, nor if the customer
// area has an address at which no browser would keep the session: lieudit login then says why.
func (f firstStart) issueLogin(ctx context.Context) (string, error) {
	address := customerarea.Address{URL: f.AreaURL}
	if !address.KeepsCookies() {
		return "", nil
	}
	link, err := f.tokens.IssueLink(ctx, systemMetadata, areatoken.FirstTokenID, areatoken.LinkLifetime)
	if errors.Is(err, areatoken.ErrFormatTooLow) {
		return "", nil
	}
	if err == nil {
		err = f.keyRing.AwaitPosition(ctx, link.Position)
	}
	if err != nil {
		return "", fmt.Errorf("link for the first session: %w", err)
	}
	return address.LinkURL(link.Secret), nil
}

// reportLostToken reports that the file with the operator token is useless, and what to do. With a log on a server this is not
// an incident: another instance has the file.
func (f firstStart) reportLostToken(why string) {
	const remedy = "its holder can issue another (lieudit token issue), or stop the service and run lieudit token recover"
	fmt.Fprintf(f.Out, "No operator token in %s, %s: %s.\n", OperatorTokenFile, why, remedy)
	if f.OwnsLogs {
		f.Log.Warn("the operator token is lost", "file", filepath.Join(f.Folder, OperatorTokenFile), "reason", why, "remedy", remedy)
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

// openDemoAccount opens the demo account with a key, in one append, and returns the key. It returns "" if the log already has
// the account: the key was shown once and is not kept.
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

// WriteFirstStart writes the first events as soon as the log can be written, and returns their secrets. An unreachable log does not end
// the instance: it tries again until ctx ends, with pauses that grow from 100 ms to 5 s.
func (i *Instance) WriteFirstStart(ctx context.Context) FirstSecrets {
	f, hasWarned, made := firstStart{i.Parts, i.accounts, i.tokens, i.keyRing}, false, FirstSecrets{}
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := i.raiseFormatOfNewLog(ctx)
		if err == nil {
			var now FirstSecrets
			now, err = f.writeEvents(ctx)
			made = FirstSecrets{cmp.Or(now.DemoKey, made.DemoKey), cmp.Or(now.Login, made.Login)} // an attempt before may have made one
		}
		if err == nil || ctx.Err() != nil {
			return made
		}
		if !hasWarned { // one log line per incident
			i.Log.Warn("first start's records not written yet", "reason", err)
			hasWarned = true
		}
		if !clock.Sleep(ctx, pause) {
			return made
		}
	}
}
