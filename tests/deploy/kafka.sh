# Does what Kafka's image does: write KAFKA_ variables as properties, and format a new volume.
set -eu
data=$KAFKA_LOG_DIRS
env | sed -n 's/^KAFKA_\([A-Z_]*\)=\(.*\)/\1 \2/p' | while read -r name value; do
    echo "$(echo "$name" | tr 'A-Z_' 'a-z.')=$value"
done > /tmp/server.properties
if [ ! -e "$data/meta.properties" ]; then
    java -cp '/kafka/*' kafka.tools.StorageTool format --cluster-id kZMmXwVJQ5Cqj2mTBgQyFg --config /tmp/server.properties
fi
exec java -Xmx512m -cp '/kafka/*' kafka.Kafka /tmp/server.properties
