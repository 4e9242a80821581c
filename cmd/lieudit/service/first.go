package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"lieudit/commands"
	"lieudit/commands/access"
	"lieudit/commands/account"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// first writes what the first start of all leaves on the log: the operator's token and the demo account. Of
// several instances that start at once, one does; the others find it done.
type first struct {
	Config
	accounts *account.Accounts
	tokens   *access.Tokens
}

// system is who writes them.
var system = commands.Intent{Actor: "system", Reason: "first start"}

const operatorFile = "operator-token"

// records writes them and gives the demo key, if this instance is the one that made it.
func (f first) records(ctx context.Context) (demo string, err error) {
	if err := f.operator(ctx); err != nil || !f.Demo {
		return "", err
	}
	return f.demo(ctx)
}

// operator makes sure that the log has a first operator token, and leaves it in the data folder of the instance
// that made it. The file is written before the log: a crash between the two is mended by the next start.
func (f first) operator(ctx context.Context) error {
	final := filepath.Join(f.Data, operatorFile)
	if _, err := os.Stat(final); err == nil {
		return nil
	}
	draft := final + ".new"
	clear, err := drafted(draft, f.Tokens)
	if err != nil {
		return fmt.Errorf("operator token: %w", err)
	}
	_, err = f.tokens.Claim(ctx, system, access.First, clear, access.Issue{Role: grant.Operator, Label: "first operator"})
	if errors.Is(err, access.ErrTaken) {
		fmt.Fprintf(f.Out, "The first operator token was made elsewhere: ask its holder for one (lieudit token issue).\n")
		return os.Remove(draft)
	}
	if err != nil {
		return fmt.Errorf("operator token: %w", err)
	}
	fmt.Fprintf(f.Out, "Operator token written to %s.\n", final)
	return os.Rename(draft, final)
}

// drafted is the token in a file, which is made when it is not there.
func drafted(path string, prefixes token.Prefixes) (string, error) {
	if kept, err := os.ReadFile(path); err == nil {
		if text := strings.TrimSpace(string(kept)); text != "" {
			if _, ok := prefixes.Kind(text); ok {
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

// demo opens the demo account with a key, once in the life of a log, and tells the key.
func (f first) demo(ctx context.Context) (string, error) {
	made, err := f.accounts.OpenWithKey(ctx, system,
		account.Open{ID: "demo", Name: "Démonstration", Plan: plan.Business},
		account.Issue{Kind: token.Secret, Label: "demo"})
	if errors.Is(err, account.ErrAlreadyOpen) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("demo account: %w", err)
	}
	return made.Clear, nil
}
