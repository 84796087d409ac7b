// Argo CD's plugin server as it is, and a client for it: what the repo-server does with a plugin's socket.
//
//	argocd-cmp serve CONFIG_FOLDER
//	argocd-cmp match|generate|parameters SOCKET REPOSITORY APP_FOLDER [NAME=VALUE]...
//
// The client prints what the server answers as JSON; a failure is on stderr, with exit status 1.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/argoproj/argo-cd/v3/cmpserver"
	"github.com/argoproj/argo-cd/v3/cmpserver/apiclient"
	"github.com/argoproj/argo-cd/v3/cmpserver/plugin"
	"github.com/argoproj/argo-cd/v3/util/cmp"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		fail(serve(os.Args[2]))
		return
	}
	if len(os.Args) < 5 {
		fail(fmt.Errorf("wanted: serve CONFIG_FOLDER, or match|generate|parameters SOCKET REPOSITORY APP_FOLDER [NAME=VALUE]..."))
	}
	answer, err := ask(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5:])
	fail(err)
	text, err := json.Marshal(answer)
	fail(err)
	fmt.Println(string(text))
}

func serve(folder string) error {
	config, err := plugin.ReadPluginConfig(folder)
	if err != nil {
		return err
	}
	server, err := cmpserver.NewServer(plugin.CMPServerInitConstants{PluginConfig: *config})
	if err != nil {
		return err
	}
	server.Run()
	return nil
}

func ask(what, socket, repository, app string, env []string) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	connection, client, err := apiclient.NewConfigManagementPluginClientSet(socket).NewConfigManagementPluginClient()
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	switch what {
	case "match":
		stream, err := client.MatchRepository(ctx)
		if err == nil {
			err = cmp.SendRepoStream(ctx, app, repository, stream, env, nil)
		}
		if err != nil {
			return nil, err
		}
		return stream.CloseAndRecv()
	case "generate":
		stream, err := client.GenerateManifest(ctx)
		if err == nil {
			err = cmp.SendRepoStream(ctx, app, repository, stream, env, nil)
		}
		if err != nil {
			return nil, err
		}
		return stream.CloseAndRecv()
	case "parameters":
		stream, err := client.GetParametersAnnouncement(ctx)
		if err == nil {
			err = cmp.SendRepoStream(ctx, app, repository, stream, env, nil)
		}
		if err != nil {
			return nil, err
		}
		return stream.CloseAndRecv()
	}
	return nil, fmt.Errorf("`%s` is nothing that a plugin server answers", what)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
