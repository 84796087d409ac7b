mkdir -p "$conf/conf.d"
printf '%s\n' "$OTEL_NGINX_AGENT_CONF" | sed "s/<<SID-PLACEHOLDER>>/$OTEL_NGINX_SERVICE_INSTANCE_ID/g" \
  > "$conf/conf.d/opentelemetry_agent.conf"
{
  printf 'env OTEL_RESOURCE_ATTRIBUTES;\n'
  printf 'load_module %s/WebServerModule/Nginx/%s/ngx_http_opentelemetry_module.so;\n' \
    "$agent" "$(cat "$conf/version.txt")"
  cat "$conf/$1"
} > "$conf/$1.instrumented"
cat "$conf/$1.instrumented" > "$conf/$1"
rm "$conf/$1.instrumented"
