set -e
agent=/opt/opentelemetry-webserver/agent
conf=/opt/opentelemetry-webserver/source-conf
cp -r /opt/opentelemetry/* "$agent"
sed "s,__agent_log_dir__,$agent/logs,g" "$agent/conf/opentelemetry_sdk_log4cxx.xml.template" \
  > "$agent/conf/opentelemetry_sdk_log4cxx.xml"
